// Faults at system calls on the files below one folder: preloaded into a server of forks
// (job_forks.py), whose children arm it. Counts calls that change files, and at the k-th kills the
// process group, or from there on fails them with an errno; keeps a journal for power_loss.py; lets
// the clock jump.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static char root[PATH_MAX], kept[PATH_MAX];
static long *count;  // shared with forks
static long kill_at, fail_at;
static int failure, journal = -1;
static unsigned jumps;
static __thread int inside;

// `kept_folder`: gets the journal and links to files that are replaced; "" for none.
void faults_arm(const char *folder, const char *kept_folder, long kill, long fail, int error,
                 int clock) {
  count = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  snprintf(kept, sizeof kept, "%s", kept_folder);
  kill_at = kill, fail_at = fail, failure = error, jumps = clock;
  if (kept[0]) {
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/journal", kept);
    journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
  snprintf(root, sizeof root, "%s", folder);
}

long faults_count(void) { return count ? *count : 0; }

static int is_below(const char *path) {
  size_t length = strlen(root);
  return length && !inside && !strncmp(path, root, length) &&
         (path[length] == '/' || !path[length]);
}

static int path_at(int folder, const char *path, char *found) {
  char base[PATH_MAX] = "";
  if (path[0] != '/') {
    char link[64];
    if (folder == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length < 0) return 0;
    base[length] = 0;
  }
  snprintf(found, PATH_MAX, "%s%s%s", base, base[0] ? "/" : "", path);
  return is_below(found);
}

static int path_of(int descriptor, char *found) {
  char link[64];
  if (!root[0] || inside) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, found, PATH_MAX - 1);
  if (length < 0) return 0;
  found[length] = 0;
  return is_below(found);
}

// Of the day, not the one that only goes on: some reads are hours or years early or late.
int clock_gettime(clockid_t kind, struct timespec *now) {
  static const long seconds[] = {0, 0, 0, -100000000, -3600, 3600, 100000000};
  int done = NEXT(clock_gettime)(kind, now);
  if (jumps && kind == CLOCK_REALTIME) now->tv_sec += seconds[rand_r(&jumps) % 7];
  return done;
}

static void note(char kind, const char *first, const char *second, long inode, long size) {
  if (journal < 0) return;
  char line[2 * PATH_MAX + 128];
  int length = snprintf(line, sizeof line, "%c\t%ld\t%ld\t%ld\t%s\t%s\n", kind, *count, inode, size,
                        first, second);
  syscall(SYS_write, journal, line, length);
}

// Counts a call, which may be the last; returns 1 if it is to fail, with errno set.
static int strikes(int may_fail) {
  long number = __sync_add_and_fetch(count, 1);
  if (kill_at && number >= kill_at) {
    kill(-getpgrp(), SIGKILL);
    for (;;) pause();
  }
  if (fail_at && may_fail && number >= fail_at) {
    errno = failure;
    return 1;
  }
  return 0;
}

static void keep(const char *path) {  // what a rename or unlink is about to remove
  char link[PATH_MAX + 32];
  if (journal < 0) return;
  snprintf(link, sizeof link, "%s/%ld", kept, *count);
  syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, link, 0);
}

static int written(int descriptor, int may_fail) {
  char path[PATH_MAX];
  if (!path_of(descriptor, path)) return 0;
  if (strikes(may_fail)) return 1;
  struct stat found;
  inside++;
  if (!fstat(descriptor, &found)) note('W', path, "", found.st_ino, found.st_size);
  inside--;
  return 0;
}

ssize_t write(int descriptor, const void *data, size_t size) {
  return written(descriptor, 1) ? -1 : NEXT(write)(descriptor, data, size);
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
  return written(descriptor, 1) ? -1 : NEXT(pwrite)(descriptor, data, size, at);
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
  return written(descriptor, 1) ? -1 : NEXT(pwrite64)(descriptor, data, size, at);
}
ssize_t writev(int descriptor, const struct iovec *parts, int number) {
  return written(descriptor, 1) ? -1 : NEXT(writev)(descriptor, parts, number);
}
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *into, size_t size, unsigned flags) {
  return written(to, 1) ? -1 : NEXT(copy_file_range)(from, at, to, into, size, flags);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size);
ssize_t sendfile64(int to, int from, off64_t *at, size_t size);
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
  return written(to, 1) ? -1 : NEXT(sendfile64)(to, from, at, size);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
  return written(to, 1) ? -1 : NEXT(sendfile)(to, from, at, size);
}
int ftruncate(int descriptor, off_t size) {
  return written(descriptor, 0) ? -1 : NEXT(ftruncate)(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) {
  return written(descriptor, 0) ? -1 : NEXT(ftruncate64)(descriptor, size);
}
size_t fwrite(const void *data, size_t size, size_t number, FILE *stream) {
  return written(fileno(stream), 1) ? 0 : NEXT(fwrite)(data, size, number, stream);
}
int fflush(FILE *stream) {
  return stream && written(fileno(stream), 1) ? EOF : NEXT(fflush)(stream);
}

static int synced(int descriptor, int (*sync)(int)) {
  char path[PATH_MAX];
  int is_ours = path_of(descriptor, path);
  if (is_ours && strikes(0)) return -1;
  int done = sync(descriptor);
  struct stat found;
  inside++;
  if (is_ours && !done && !fstat(descriptor, &found)) note('S', path, "", found.st_ino, found.st_size);
  inside--;
  return done;
}
int fsync(int descriptor) { return synced(descriptor, NEXT(fsync)); }
int fdatasync(int descriptor) { return synced(descriptor, NEXT(fdatasync)); }

static int renamed(int from, const char *old, int to, const char *new, unsigned flags) {
  char source[PATH_MAX], target[PATH_MAX];
  int is_ours = root[0] && path_at(from, old, source);
  is_ours = root[0] && path_at(to, new, target) && is_ours;
  if (is_ours) {
    if (strikes(0)) return -1;
    keep(target);
    note('R', source, target, 0, 0);
  }
  return syscall(SYS_renameat2, from, old, to, new, flags);
}
int rename(const char *old, const char *new) { return renamed(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) {
  return renamed(from, old, to, new, 0);
}
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  return renamed(from, old, to, new, flags);
}

static int removed(int folder, const char *name, int flags) {
  char path[PATH_MAX];
  if (root[0] && path_at(folder, name, path)) {
    if (strikes(0)) return -1;
    if (!(flags & AT_REMOVEDIR)) keep(path);
    note(flags & AT_REMOVEDIR ? 'D' : 'U', path, "", 0, 0);
  }
  return syscall(SYS_unlinkat, folder, name, flags);
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  struct stat found;
  return removed(AT_FDCWD, path, !lstat(path, &found) && S_ISDIR(found.st_mode) ? AT_REMOVEDIR : 0);
}

static int made(int folder, const char *name, mode_t mode) {
  char path[PATH_MAX];
  if (root[0] && path_at(folder, name, path) && access(path, F_OK)) {
    if (strikes(1)) return -1;
    note('M', path, "", 0, 0);
  }
  return syscall(SYS_mkdirat, folder, name, mode);
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char *path, mode_t mode) { return made(folder, path, mode); }

static int opened(int folder, const char *name, int flags, mode_t mode) {
  char path[PATH_MAX];
  if (root[0] && (flags & (O_CREAT | O_TRUNC)) && path_at(folder, name, path)) {
    int is_new = access(path, F_OK) != 0;
    if (is_new || flags & O_TRUNC) {
      if (strikes(1)) return -1;
      if (is_new) note('C', path, "", 0, 0);
    }
  }
  return syscall(SYS_openat, folder, name, flags, mode);
}
#define OPEN(function, folder_parameter, folder)                                      \
  int function(folder_parameter const char *path, int flags, ...) {                   \
    va_list rest;                                                                     \
    va_start(rest, flags);                                                            \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;           \
    va_end(rest);                                                                     \
    return opened(folder, path, flags, mode);                                         \
  }
#define FOLDER int place,
OPEN(open, , AT_FDCWD)
OPEN(open64, , AT_FDCWD)
OPEN(openat, FOLDER, place)
OPEN(openat64, FOLDER, place)

static FILE *streamed(const char *name, const char *mode, FILE *(*open)(const char *, const char *)) {
  char path[PATH_MAX];
  if (root[0] && mode[0] != 'r' && path_at(AT_FDCWD, name, path)) {
    int is_new = access(path, F_OK) != 0;
    if (strikes(1)) return NULL;
    if (is_new) note('C', path, "", 0, 0);
  }
  return open(name, mode);
}
FILE *fopen(const char *path, const char *mode) { return streamed(path, mode, NEXT(fopen)); }
FILE *fopen64(const char *path, const char *mode) { return streamed(path, mode, NEXT(fopen64)); }
