// SPDX-License-Identifier: Apache-2.0
// Counts how often each page of mapped files is brought into a memory that holds few of them.
// Loaded before a program (LD_PRELOAD): files of one folder are mapped without access, the first
// touch of a page faults and is counted, and the page is taken away again when PAGE_READS_HELD
// others have come after it. For tests/python/test_read_twice.py.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kFiles = 512, kMaps = 4096, kMostHeld = 1 << 16 };

struct File {
  char path[PATH_MAX];
  unsigned* reads;  // by page
  size_t pages;
};
struct Map {
  char* start;
  size_t bytes, first_page;
  struct File* file;
};

static struct File files[kFiles];
static struct Map maps[kMaps];
static char* held[kMostHeld];
static size_t file_count, map_count, held_next, held_most = 1024;
// Ready before any constructor: allocators map memory before this library is started.
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void) {
  while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
  }
}
static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

static void* real_mmap(void* at, size_t bytes, int rights, int flags, int fd, off_t offset) {
  static void* (*real)(void*, size_t, int, int, int, off_t);
  if (!real) real = (void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  return real(at, bytes, rights, flags, fd, offset);
}

static struct File* file_of(int fd) {
  const char* folder = getenv("PAGE_READS_FOLDER");
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = fd < 0 ? -1 : readlink(link, path, sizeof path - 1);
  if (length <= 0 || !folder || strncmp(path, folder, strlen(folder)) != 0) return NULL;
  path[length] = 0;
  for (size_t i = 0; i < file_count; ++i) {
    if (strcmp(files[i].path, path) == 0) return &files[i];
  }
  if (file_count == kFiles) abort();
  struct File* file = &files[file_count++];
  strcpy(file->path, path);
  file->pages = (size_t)lseek(fd, 0, SEEK_END) / kPage + 1;
  file->reads = real_mmap(NULL, file->pages * sizeof *file->reads, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return file;
}

void* mmap(void* at, size_t bytes, int rights, int flags, int fd, off_t offset) {
  if (rights != PROT_READ) return real_mmap(at, bytes, rights, flags, fd, offset);
  lock();
  struct File* file = file_of(fd);
  void* got = real_mmap(at, bytes, file ? PROT_NONE : rights, flags, fd, offset);
  if (file && got != MAP_FAILED) {
    if (map_count == kMaps) abort();
    maps[map_count++] = (struct Map){got, bytes, (size_t)offset / kPage, file};
  }
  unlock();
  return got;
}
void* mmap64(void* at, size_t bytes, int rights, int flags, int fd, off_t offset) {
  return mmap(at, bytes, rights, flags, fd, offset);
}

int munmap(void* start, size_t bytes) {
  static int (*real)(void*, size_t);
  if (!real) real = (int (*)(void*, size_t))dlsym(RTLD_NEXT, "munmap");
  lock();
  for (size_t i = 0; i < map_count; ++i) {
    if (maps[i].start != start) continue;
    for (size_t k = 0; k < held_most; ++k) {
      if (held[k] >= maps[i].start && held[k] < maps[i].start + maps[i].bytes) held[k] = NULL;
    }
    maps[i] = maps[--map_count];
    break;
  }
  const int done = real(start, bytes);
  unlock();
  return done;
}

/// Whether the fault is of a page that is not there.
static int bring(char* address) {
  char* page = (char*)((uintptr_t)address & ~(uintptr_t)(kPage - 1));
  for (size_t i = 0; i < map_count; ++i) {
    struct Map* map = &maps[i];
    if (page < map->start || page >= map->start + map->bytes) continue;
    for (size_t k = 0; k < held_most; ++k) {
      if (held[k] == page) return 1;  // another thread was first
    }
    char** place = &held[held_next++ % held_most];
    if (*place) mprotect(*place, kPage, PROT_NONE);
    *place = page;
    mprotect(page, kPage, PROT_READ);
    ++map->file->reads[map->first_page + (size_t)(page - map->start) / kPage];
    return 1;
  }
  return 0;
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  lock();
  const int known = bring(info->si_addr);
  unlock();
  if (!known) signal(signal_number, SIG_DFL);
}

__attribute__((constructor)) static void start(void) {
  const char* most = getenv("PAGE_READS_HELD");
  if (most) held_most = strtoul(most, NULL, 10);
  if (held_most == 0 || held_most > kMostHeld) abort();
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
}

/// A line a file: its path, a tab, and how often each page was brought.
__attribute__((destructor)) static void finish(void) {
  const char* path = getenv("PAGE_READS_OUT");
  FILE* to = path ? fopen(path, "w") : NULL;
  if (!to) return;
  for (size_t i = 0; i < file_count; ++i) {
    fprintf(to, "%s\t", files[i].path);
    for (size_t k = 0; k < files[i].pages; ++k) fprintf(to, "%u ", files[i].reads[k]);
    fprintf(to, "\n");
  }
  fclose(to);
}
