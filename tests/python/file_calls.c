// SPDX-License-Identifier: Apache-2.0
// Loaded before a program (LD_PRELOAD), for tests/python/test_outputs.py: close() of a descriptor
// that writes a file in the folder CLOSE_FAILS, or of standard output where that is "stdout", closes
// it and fails with EIO; fsync() and rename() are written to the file CALLS, a line each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(const char* call) {
  const char* path = getenv("CALLS");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  if (write(file, call, strlen(call)) < 0) abort();
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
  real(file);
}

static int must_fail(int file) {
  const char* wanted = getenv("CLOSE_FAILS");
  if (!wanted) return 0;
  if (strcmp(wanted, "stdout") == 0) return file == STDOUT_FILENO;
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0 || (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY) return 0;
  path[length] = 0;
  return strncmp(path, wanted, strlen(wanted)) == 0;
}

int close(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
  const int fails = must_fail(file);
  const int done = real(file);
  if (!fails) return done;
  errno = EIO;
  return -1;
}

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  note("fsync\n");
  return real(file);
}

int rename(const char* from, const char* to) {
  int (*real)(const char*, const char*) =
      (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  note("rename\n");
  return real(from, to);
}
