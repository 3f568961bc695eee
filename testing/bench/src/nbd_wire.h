/* Structures of the NBD protocol and socket functions, used by the client and the server. */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct option_head { uint64_t magic; uint32_t option, length; } __attribute__((packed));
struct option_reply { uint64_t magic; uint32_t option, kind, length; } __attribute__((packed));
struct request { uint32_t magic; uint16_t flags, kind; uint64_t cookie, offset; uint32_t length; }
	__attribute__((packed));
struct reply { uint32_t magic, error; uint64_t cookie; } __attribute__((packed));
struct export_info { uint16_t kind; uint64_t bytes; uint16_t flags; } __attribute__((packed));

static int take(int fd, void *to, size_t length)
{
	uint8_t *at = to;
	while (length > 0) {
		ssize_t got = recv(fd, at, length, 0);
		if (got <= 0)
			return 0;
		at += got;
		length -= (size_t)got;
	}
	return 1;
}

static int give(int fd, const void *from, size_t length)
{
	const uint8_t *at = from;
	while (length > 0) {
		ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
		if (sent <= 0)
			return 0;
		at += sent;
		length -= (size_t)sent;
	}
	return 1;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static int local_socket(const char *path, struct sockaddr_un *address)
{
	address->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof address->sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address->sun_path, path);
	return socket(AF_UNIX, SOCK_STREAM, 0);
}
