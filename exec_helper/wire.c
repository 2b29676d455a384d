#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char TIMED_OUT[] = "the supervisor does not answer";
static const char HUNG_UP[] = "the supervisor hung up";

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the socket is ready for `events`. Returns NULL or what went wrong. */
static const char *wait_for(int link, short events, int64_t deadline_ms)
{
    for (;;) {
        int64_t left = deadline_ms - now_ms();
        if (left <= 0)
            return TIMED_OUT;
        int ready = poll(&(struct pollfd){.fd = link, .events = events}, 1, (int)left);
        if (ready > 0)
            return NULL;
        if (ready < 0 && errno != EINTR)
            return strerror(errno);
    }
}

static const char *send_all(int link, const char *bytes, size_t length, int64_t deadline_ms)
{
    while (length > 0) {
        ssize_t sent = send(link, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno == EAGAIN) {
            const char *fault = wait_for(link, POLLOUT, deadline_ms);
            if (fault)
                return fault;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return NULL; /* it closed early: the reply that says why may still be there to read */
        } else if (errno != EINTR) {
            return strerror(errno);
        }
    }
    return NULL;
}

static const char *receive_all(int link, char *bytes, size_t length, int64_t deadline_ms)
{
    while (length > 0) {
        ssize_t got = recv(link, bytes, length, MSG_DONTWAIT);
        if (got > 0) {
            bytes += got;
            length -= (size_t)got;
        } else if (got == 0 || errno == ECONNRESET) {
            return HUNG_UP;
        } else if (errno == EAGAIN) {
            const char *fault = wait_for(link, POLLIN, deadline_ms);
            if (fault)
                return fault;
        } else if (errno != EINTR) {
            return strerror(errno);
        }
    }
    return NULL;
}

static uint32_t from_big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads one `u32be length + bytes`. */
static const char *receive_part(int link, char **part, size_t *part_length, int64_t deadline_ms)
{
    unsigned char prefix[4];
    const char *fault = receive_all(link, (char *)prefix, sizeof prefix, deadline_ms);
    if (fault)
        return fault;
    *part_length = from_big_endian(prefix);
    if (*part_length > WIRE_LIMIT)
        return "the supervisor's reply is too long";
    *part = malloc(*part_length + 1);
    if (!*part)
        return strerror(ENOMEM);
    (*part)[*part_length] = 0;
    return receive_all(link, *part, *part_length, deadline_ms);
}

static const char *receive_reply(int link, struct reply *reply, int64_t deadline_ms)
{
    const char *fault = receive_all(link, (char *)&reply->status, 1, deadline_ms);
    if (!fault)
        fault = receive_part(link, &reply->out, &reply->out_length, deadline_ms);
    if (!fault)
        fault = receive_part(link, &reply->err, &reply->err_length, deadline_ms);
    return fault;
}

/* connect() by path. A path too long for sun_path is reached from inside its directory: the supervisor resolves a
 * relative name against our working directory. Returns 0, or -1 with errno set. */
static int connect_in(int link, const struct run *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%s/hook.sock", run->path);
    if (length < (int)sizeof address.sun_path)
        return connect(link, (struct sockaddr *)&address, sizeof address);
    snprintf(address.sun_path, sizeof address.sun_path, "hook.sock");
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return -1;
    int failed = fchdir(run->directory) || connect(link, (struct sockaddr *)&address, sizeof address);
    int error = errno;
    if (fchdir(here) != 0) {
        failed = -1; /* the command must start where its caller was */
        error = errno;
    }
    close(here);
    errno = error;
    return failed ? -1 : 0;
}

/* True when the process that listens is the supervisor itself: the kernel's word, taken at its listen(). */
static bool is_supervisor(int link, const struct run *run)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(link, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == run->supervisor;
}

static const char *converse(int link, const char *head, size_t head_length, const void *payload, size_t length,
                            int64_t deadline_ms, struct reply *reply)
{
    const char *fault = send_all(link, head, head_length, deadline_ms);
    if (!fault)
        fault = send_all(link, payload, length, deadline_ms);
    if (!fault)
        fault = receive_reply(link, reply, deadline_ms);
    return fault;
}

const char *wire_ask(const struct run *run, enum wire_kind kind, const void *payload, size_t length, int patience_ms,
                     struct reply *reply)
{
    *reply = (struct reply){0};
    if (length > WIRE_LIMIT)
        return "more than 64 MiB to send";
    int64_t deadline_ms = now_ms() + patience_ms;
    int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link < 0)
        return strerror(errno);
    /* A full backlog makes connect() wait; SO_SNDTIMEO bounds that wait too. Source: unix(7), socket(7). */
    struct timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
    setsockopt(link, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const char head[9] = {'N', 'D', '7', 1, (char)kind, (char)(length >> 24), (char)(length >> 16), (char)(length >> 8),
                          (char)length};
    const char *fault;
    if (connect_in(link, run) < 0)
        fault = errno == EAGAIN ? TIMED_OUT : strerror(errno);
    else if (!is_supervisor(link, run))
        fault = "its socket is not the supervisor's";
    else
        fault = converse(link, head, sizeof head, payload, length, deadline_ms, reply);
    close(link);
    return fault;
}

void reply_release(struct reply *reply)
{
    free(reply->out);
    free(reply->err);
    *reply = (struct reply){0};
}
