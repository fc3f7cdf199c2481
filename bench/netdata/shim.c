// A library to preload into Debian's netdata-core 1.37.1-2 (amd64, checked by install.sh), whose stress test does not run as shipped.
//
// "netdata -W stresstest=…" ends with a segmentation fault: it makes a host before the tables of hosts are there. So "-W unittest" is started, which
// makes them, and its first suite is led to the stress test of the same binary. And rrdset_done() stamps values with the wall clock, so that the
// test's quick time stores next to nothing: it is led to rrdset_timed_done() with the test's own time. Nothing else of the engine is changed.
//
// sleep() is wrapped, because the main thread of the test sleeps through each of its phases: it reads the counters of the test's threads before and
// after, and afterwards tells the writers to stop by their own flag, for a phase of reads only.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// Places in the binary.
enum { UNIT_TESTS = 0x2d460, STRESS_TEST = 0x30020, WRITER = 0x29080, READER = 0x2a260, RRDSET_DONE = 0xc24e0, RRDSET_TIMED_DONE = 0xc0fb0 };
// Fields of a writer, a reader, a chart and a dimension.
enum { W_NUMBER = 0x20, W_DONE = 0x40, W_WRITTEN = 0xb0, W_CHART = 0xb8, W_DIMENSIONS = 0xc0 };
enum { R_QUERIES = 0x40, R_READ = 0x48 };
enum { CHART_LAST = 0x120, DIMENSION_VALUE = 0xb8 };
enum { MAX_THREADS = 1024, CHART_METRICS = 128 };

static uintptr_t base;
static char *writers[MAX_THREADS], *readers[MAX_THREADS];
static int writer_count, reader_count, sleeps, running;
static int generator;        // 0: the test's own values, 1: gauges, 2: counters, 3: constants
static unsigned long points; // after which a series ends, 0 for never

struct counts { double at, cpu; unsigned long written, read, queries; long rss_kib; };

static unsigned long field(char *p, int offset) { return *(volatile unsigned long *)(p + offset); }

static struct counts count(void) {
	struct counts c = {0};
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	c.at = t.tv_sec + t.tv_nsec * 1e-9;
	for (int i = 0; i < writer_count; i++) c.written += field(writers[i], W_WRITTEN);
	for (int i = 0; i < reader_count; i++) c.read += field(readers[i], R_READ), c.queries += field(readers[i], R_QUERIES);
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	c.cpu = u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %ld", &c.rss_kib);
	if (f) fclose(f);
	return c;
}

static long disk_bytes(void) {
	long bytes = 0;
	FILE *p = popen("du -sB1 /var/cache/netdata 2>/dev/null", "r");
	if (p) {
		if (fscanf(p, "%ld", &bytes) != 1) bytes = 0;
		pclose(p);
	}
	return bytes;
}

static void report(const char *phase, struct counts a, struct counts b) {
	double s = b.at - a.at;
	fprintf(stderr, "\nPHASE %s seconds=%.2f writes=%.0f reads=%.0f queries=%.0f cores=%.3f rss=%ld disk=%ld samples=%lu\n", phase, s,
	        (b.written - a.written) / s, (b.read - a.read) / s, (b.queries - a.queries) / s, (b.cpu - a.cpu) / s, b.rss_kib * 1024,
	        disk_bytes(), b.written);
}

static void pause_for(unsigned seconds) {
	struct timespec t = {seconds, 0};
	while (nanosleep(&t, &t) && errno == EINTR) {}
}

unsigned sleep(unsigned seconds) {
	if (!running || gettid() != getpid()) {
		pause_for(seconds);
		return 0;
	}
	struct counts before = count();
	pause_for(seconds);
	report(++sleeps == 1 ? "write" : "mixed", before, count());
	if (sleeps == 2 && getenv("READS_ONLY")) {
		for (int i = 0; i < writer_count; i++) *(volatile long *)(writers[i] + W_DONE) = 1;
		pause_for(5); // they finish their pages
		before = count();
		pause_for(atoi(getenv("READS_ONLY")));
		report("read", before, count());
	}
	return 0;
}

int uv_thread_create(void *thread, void (*entry)(void *), void *arg) {
	static int (*create)(void *, void (*)(void *), void *);
	if (!create) create = dlsym(RTLD_NEXT, "uv_thread_create");
	if ((uintptr_t)entry == base + WRITER && writer_count < MAX_THREADS) writers[writer_count++] = arg;
	if ((uintptr_t)entry == base + READER && reader_count < MAX_THREADS) readers[reader_count++] = arg;
	return create(thread, entry, arg);
}

// One writer's values; each writer is a thread.
static __thread char *self;
static __thread uint64_t state;
static __thread int64_t value[CHART_METRICS];
static __thread int rate[CHART_METRICS];

static uint64_t next(void) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state;
}

static void start_values(char *chart) {
	for (int i = 0; i < writer_count; i++)
		if (*(char **)(writers[i] + W_CHART) == chart) self = writers[i];
	state = 88172645463325252ULL * (1 + *(int *)(self + W_NUMBER));
	for (int k = 0; k < 20; k++) next();
	for (int j = 0; j < CHART_METRICS; j++) {
		value[j] = next() % (generator == 1 ? 10000 : generator == 2 ? 1000000 : 1000);
		rate[j] = 1 + next() % 2000;
	}
}

static void make_values(void) {
	for (int j = 0; j < CHART_METRICS; j++) {
		int64_t v = value[j];
		if (generator == 1) {
			v += (int64_t)(next() % 101) - 50;
			if (v < 0) v = -v;
			if (v > 10000) v = 20000 - v;
			value[j] = v;
		} else if (generator == 2) {
			v += rate[j] - rate[j] / 10 + (int64_t)(next() % (rate[j] / 5 + 1));
			value[j] = v;
			v &= 0xffffff; // more digits would be lost
		}
		*(int64_t *)(*(char **)(self + W_DIMENSIONS + 8 * j) + DIMENSION_VALUE) = v;
	}
}

static void done(char *chart) {
	if (generator || points) {
		if (!self) start_values(chart);
		if (generator) make_values();
		if (points && field(self, W_WRITTEN) / CHART_METRICS >= points) *(volatile long *)(self + W_DONE) = 1;
	}
	((void (*)(char *, long, long, int))(base + RRDSET_TIMED_DONE))(chart, *(long *)(chart + CHART_LAST) + 1, 0, 0);
}

// lead makes a function of the binary jump to another one.
static void lead(uintptr_t from, void *to) {
	unsigned char *code = (unsigned char *)from;
	void *page = (void *)(from & ~4095UL);
	mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	code[0] = 0x48, code[1] = 0xb8; // mov rax, to
	memcpy(code + 2, &to, 8);
	code[10] = 0xff, code[11] = 0xe0; // jmp rax
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
}

static int stress(void) {
	unsigned a[6];
	if (sscanf(getenv("STRESS"), "%u,%u,%u,%u,%u,%u", a, a + 1, a + 2, a + 3, a + 4, a + 5) != 6) {
		fprintf(stderr, "STRESS: expected six numbers divided by commas\n");
		_exit(2);
	}
	running = 1;
	((void (*)(unsigned, unsigned, unsigned, unsigned, unsigned, unsigned))(base + STRESS_TEST))(a[0], a[1], a[2], a[3], a[4], a[5]);
	_exit(0);
}

static int first_object(struct dl_phdr_info *info, size_t size, void *data) {
	(void)size, (void)data;
	base = info->dlpi_addr;
	return 1;
}

__attribute__((constructor)) static void start(void) {
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (!getenv("STRESS") || n <= 0) return;
	path[n] = 0;
	if (!strstr(path, "netdata")) return;
	dl_iterate_phdr(first_object, 0);
	if (getenv("GEN")) generator = atoi(getenv("GEN"));
	if (getenv("MAXT")) points = strtoul(getenv("MAXT"), 0, 10);
	lead(base + UNIT_TESTS, stress);
	lead(base + RRDSET_DONE, done);
}
