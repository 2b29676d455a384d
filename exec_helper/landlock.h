/* Landlock's system calls and constants, by number: distributions' kernel headers are older than their kernels (Debian
 * 12 stops at ABI 2). Source: Linux Documentation/userspace-api/landlock.rst, include/uapi/linux/landlock.h. */
#ifndef ND7_LANDLOCK_H
#define ND7_LANDLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same number on every architecture but alpha. */
#define ND7_NR_landlock_create_ruleset 444
#define ND7_NR_landlock_add_rule 445
#define ND7_NR_landlock_restrict_self 446

#define LL_CREATE_RULESET_VERSION (1U << 0)
#define LL_RULE_PATH_BENEATH 1

#define LL_FS_WRITE_FILE (UINT64_C(1) << 1)
#define LL_FS_READ_FILE (UINT64_C(1) << 2)
#define LL_FS_REMOVE_DIR (UINT64_C(1) << 4)
#define LL_FS_REMOVE_FILE (UINT64_C(1) << 5)
#define LL_FS_MAKE_CHAR (UINT64_C(1) << 6)
#define LL_FS_MAKE_DIR (UINT64_C(1) << 7)
#define LL_FS_MAKE_REG (UINT64_C(1) << 8)
#define LL_FS_MAKE_SOCK (UINT64_C(1) << 9)
#define LL_FS_MAKE_FIFO (UINT64_C(1) << 10)
#define LL_FS_MAKE_BLOCK (UINT64_C(1) << 11)
#define LL_FS_MAKE_SYM (UINT64_C(1) << 12)
#define LL_FS_REFER (UINT64_C(1) << 13)    /* ABI 2 */
#define LL_FS_TRUNCATE (UINT64_C(1) << 14) /* ABI 3 */

struct ll_ruleset_attr {
    uint64_t handled_access_fs; /* the first member is all we handle; the kernel takes the rest as zero */
};

struct ll_path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* The kernel's Landlock ABI, or -1 with errno (ENOSYS: not built in, EOPNOTSUPP: switched off). */
static inline int ll_abi(void)
{
    return (int)syscall(ND7_NR_landlock_create_ruleset, NULL, 0, LL_CREATE_RULESET_VERSION);
}

static inline int ll_create(const struct ll_ruleset_attr *attr)
{
    return (int)syscall(ND7_NR_landlock_create_ruleset, attr, sizeof *attr, 0);
}

static inline int ll_add_path(int ruleset, const struct ll_path_beneath_attr *attr)
{
    return (int)syscall(ND7_NR_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, attr, 0);
}

static inline int ll_restrict(int ruleset)
{
    return (int)syscall(ND7_NR_landlock_restrict_self, ruleset, 0);
}

#endif
