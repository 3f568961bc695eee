/* Measures the Internet checksum of a buffer in cache: with DPDK, or with a plain loop over
 * 16-bit words, which the compiler must not vectorize. Prints gigabytes per second.
 *
 * checksum dpdk|scalar LENGTH SECONDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ip.h>

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

__attribute__((noinline, optimize("no-tree-vectorize")))
static uint16_t scalar(const void *bytes, size_t length)
{
	const uint16_t *words = bytes;
	uint64_t sum = 0;
	for (size_t at = 0; at < length / 2; at++)
		sum += words[at];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

__attribute__((noinline))
static uint16_t dpdk(const void *bytes, size_t length)
{
	return rte_raw_cksum(bytes, length);
}

int main(int count, char **words)
{
	if (count != 4)
		return 2;
	uint16_t (*sum)(const void *, size_t) = strcmp(words[1], "dpdk") ? scalar : dpdk;
	size_t length = strtoul(words[2], NULL, 10);
	double seconds = strtod(words[3], NULL);
	uint8_t *bytes = aligned_alloc(64, (length + 63) / 64 * 64);
	for (size_t at = 0; at < length; at++)
		bytes[at] = (uint8_t)(at * 7);
	uint64_t rounds = 0;
	unsigned all = 0;
	double began = now(), ended;
	do {
		for (int round = 0; round < 1000; round++) {
			all += sum(bytes, length);
			/* Makes the compiler assume that the bytes have changed. */
			__asm__ volatile("" : : "r"(bytes) : "memory");
		}
		rounds += 1000;
		ended = now();
	} while (ended - began < seconds);
	printf("%f %u\n", rounds * (double)length / (ended - began) / 1e9, all);
	return 0;
}
