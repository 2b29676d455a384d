#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1)
#endif

static struct seen look(const char *path)
{
    struct stat status;
    if (!path || stat(path, &status) != 0)
        return (struct seen){0};
    return (struct seen){true, status.st_mtim, status.st_ino, status.st_size};
}

static bool is_same(const struct seen *one, const struct seen *other)
{
    return one->there == other->there && one->changed.tv_sec == other->changed.tv_sec &&
           one->changed.tv_nsec == other->changed.tv_nsec && one->inode == other->inode && one->size == other->size;
}

bool loop_init(struct loop *loop, int listener, char *rules_path)
{
    *loop = (struct loop){.rules_path = rules_path, .rules = look(rules_path)};
    /* Before Linux 6.6 there is no such flag: slower, not weaker. */
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
    return caller_init(&loop->own, listener);
}

static void respond(const struct caller *caller, int64_t value, int error, uint32_t flags)
{
    struct seccomp_notif_resp response = {.id = caller->id, .val = value, .error = error, .flags = flags};
    /* ENOENT: the caller is gone, and with it the need of an answer. */
    (void)ioctl(caller->own->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void inject(const struct caller *caller, int fd, bool cloexec)
{
    struct seccomp_notif_addfd added = {
        .id = caller->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)fd,
        .newfd_flags = cloexec ? O_CLOEXEC : 0,
    };
    int listener = caller->own->listener;
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added) < 0 && errno != ENOENT) {
        int error = errno;
        added.flags = 0; /* Linux 5.13 cannot add and answer at once */
        int number = error == EINVAL ? ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added) : -1;
        respond(caller, number < 0 ? 0 : number, number < 0 ? -error : 0, 0);
    }
    close(fd);
}

static void answer(struct loop *loop, const struct caller *caller, struct verdict verdict)
{
    switch (verdict.kind) {
    case CONTINUE:
        loop->continued++;
        respond(caller, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
        return;
    case INJECT:
        inject(caller, verdict.value, verdict.cloexec);
        break;
    case RETURN:
        respond(caller, verdict.value, 0, 0);
        break;
    default:
        respond(caller, 0, -verdict.value, 0);
    }
    loop->answered++;
}

/* Receives one call; returns 0, or an errno. */
static int receive(const struct loop *loop, struct caller *caller)
{
    struct seccomp_notif notification;
    memset(&notification, 0, sizeof notification);
    if (ioctl(loop->own.listener, SECCOMP_IOCTL_NOTIF_RECV, &notification) != 0)
        return errno;
    *caller = (struct caller){
        .own = &loop->own, .id = notification.id, .tid = (pid_t)notification.pid, .nr = notification.data.nr};
    for (int i = 0; i < 6; i++)
        caller->args[i] = notification.data.args[i];
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum ending loop_next(struct loop *loop, int timeout_ms, int wake, struct caller *caller)
{
    int64_t end = now_ms() + timeout_ms;
    struct pollfd fds[] = {{.fd = loop->hung_up ? -1 : loop->own.listener, .events = POLLIN},
                           {.fd = wake, .events = POLLIN}};
    do {
        int64_t left = end - now_ms();
        if (poll(fds, 2, left > 0 ? (int)left : 0) <= 0)
            return NOTHING; /* the time is up, or a signal came */
        if (fds[0].revents & POLLIN) {
            int error = receive(loop, caller);
            if (error == ENOENT || error == EINTR)
                continue; /* the caller was killed meanwhile */
            if (error) {
                errno = error;
                return BROKEN;
            }
            struct seen rules = look(loop->rules_path);
            if (!is_same(&rules, &loop->rules)) {
                loop->rules = rules;
                return A_CALL;
            }
            struct verdict verdict = decide(caller, &loop->ground);
            if (verdict.kind == PUNT)
                return A_CALL;
            answer(loop, caller, verdict);
        } else if (fds[0].revents) {
            loop->hung_up = true;
            return NOTHING;
        }
        /* Whoever is waited for elsewhere has a turn after every call, and no longer than this without one. */
    } while (!fds[1].revents && now_ms() < end);
    return NOTHING;
}
