/* Measures the cost of the kernel's software segmentation of a large TCP/IPv4 frame.
 *
 * segmentation DEVICE SECONDS whole|linear|paged
 *
 * Creates the TAP device DEVICE, which drops all frames that it has to send, and repeatedly
 * sends the same large frame through a packet socket with a virtio-net header.
 * `whole`: the device accepts large frames, so the kernel does not segment.
 * `linear`: the device has no offloads; the kernel copies the payload into the segments.
 * `paged`: the device accepts scattered memory, but neither partial checksums nor large
 * frames; segments refer to the large frame's payload, which is read for the checksums but
 * not copied.
 * Prints the nanoseconds per large frame and the number of frames that the device got for it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT 1448
#define HEADERS (14 + 20 + 32)
#define LENGTH (HEADERS + 45 * SEGMENT)

static struct {
	struct virtio_net_hdr header;
	uint8_t bytes[LENGTH];
} __attribute__((packed)) frame;

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static int must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static void put(unsigned at, unsigned bytes, uint32_t value)
{
	for (unsigned nth = 0; nth < bytes; nth++)
		frame.bytes[at + nth] = value >> 8 * (bytes - 1 - nth);
}

/* Returns the folded sum of the 16-bit words of a buffer. */
static uint32_t sum(const uint8_t *bytes, unsigned length, uint32_t sum)
{
	for (unsigned at = 0; at < length; at += 2)
		sum += bytes[at] << 8 | bytes[at + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void make_frame(void)
{
	for (unsigned at = HEADERS; at < LENGTH; at++)
		frame.bytes[at] = at * 7;
	put(0, 4, 0x02000000), put(4, 2, 2), put(6, 4, 0x02000000), put(10, 2, 1);
	put(12, 2, ETH_P_IP), put(14, 1, 0x45), put(16, 2, LENGTH - 14);
	put(22, 1, 64), put(23, 1, IPPROTO_TCP), put(26, 4, 0x0a000001), put(30, 4, 0x0a000002);
	put(24, 2, ~sum(frame.bytes + 14, 20, 0));
	put(34, 2, 1000), put(36, 2, 2000), put(46, 1, 32 / 4 << 4), put(47, 1, 0x10), put(48, 2, 0xffff);
	put(54, 4, 0x0101080a);
	put(50, 2, sum(frame.bytes + 26, 8, IPPROTO_TCP + LENGTH - 34));
	frame.header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = HEADERS,
		.gso_size = SEGMENT,
		.csum_start = 34,
		.csum_offset = 16,
	};
}

static void make_device(const char *name, const char *mode)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {1, &nothing};
	struct ethtool_value scatter = {ETHTOOL_SSG, strcmp(mode, "linear") != 0};
	int is_whole = !strcmp(mode, "whole");
	int device = must(open("/dev/net/tun", O_RDWR), "/dev/net/tun");
	int any = must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	must(ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
	must(ioctl(device, TUNATTACHFILTER, &filter), "TUNATTACHFILTER");
	must(ioctl(device, TUNSETOFFLOAD, is_whole ? TUN_F_CSUM | TUN_F_TSO4 : 0), "TUNSETOFFLOAD");
	request.ifr_data = (char *)&scatter;
	must(ioctl(any, SIOCETHTOOL, &request), "ETHTOOL_SSG");
	request.ifr_flags = IFF_UP;
	must(ioctl(any, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
	close(any);
}

static int open_socket(const char *name)
{
	int one = 1, opened = must(socket(AF_PACKET, SOCK_RAW, 0), "packet socket");
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = if_nametoindex(name),
	};
	must(setsockopt(opened, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one), "PACKET_VNET_HDR");
	/* The socket only sends. */
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = {1, &nothing};
	must(setsockopt(opened, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), "SO_ATTACH_FILTER");
	must(bind(opened, (void *)&to, sizeof to), "bind");
	return opened;
}

/* Returns the number of frames that the device got: the twelfth number after its name. */
static uint64_t dropped(const char *name)
{
	char line[512], label[IFNAMSIZ + 1];
	FILE *list = fopen("/proc/net/dev", "r");
	snprintf(label, sizeof label, "%s:", name);
	while (list && fgets(line, sizeof line, list)) {
		char *at = strstr(line, label);
		unsigned long long sent, lost;
		if (at && sscanf(at + strlen(label),
				 "%*u %*u %*u %*u %*u %*u %*u %*u %*u %llu %*u %llu", &sent, &lost) == 2) {
			fclose(list);
			return sent + lost;
		}
	}
	fprintf(stderr, "no counters of %s\n", name);
	exit(1);
}

int main(int count, char **words)
{
	if (count != 4)
		return 2;
	double seconds = strtod(words[2], NULL), began, ended;
	make_frame();
	make_device(words[1], words[3]);
	int socket = open_socket(words[1]);
	uint64_t frames = 0, before = dropped(words[1]);
	began = now();
	do {
		for (int nth = 0; nth < 100; nth++, frames++)
			/* The drop by the device may or may not be reported as ENOBUFS. */
			if (send(socket, &frame, sizeof frame, 0) < 0 && errno != ENOBUFS)
				must(-1, "send");
		ended = now();
	} while (ended - began < seconds);
	printf("%f %f\n", (ended - began) * 1e9 / frames, (double)(dropped(words[1]) - before) / frames);
	return 0;
}
