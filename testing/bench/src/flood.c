/* Sends 64-byte UDP/IPv4 frames at the maximum rate until it is killed.
 *
 * flood DESTINATION SOURCE FLOWS DEVICE...
 *
 * The addresses are MAC addresses of twelve hexadecimal digits. The devices send batches of
 * frames in turn; flows differ in the source port. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH 64
#define BATCH 32
#define DEVICES 32
#define FLOWS 1024

static uint8_t frames[FLOWS][LENGTH];

static int must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static void put(uint8_t *frame, unsigned at, unsigned bytes, uint64_t value)
{
	for (unsigned nth = 0; nth < bytes; nth++)
		frame[at + nth] = value >> 8 * (bytes - 1 - nth);
}

static void make_frame(uint8_t *frame, uint64_t to, uint64_t from, unsigned flow)
{
	uint32_t sum = 0;
	put(frame, 0, 6, to), put(frame, 6, 6, from), put(frame, 12, 2, ETH_P_IP);
	put(frame, 14, 1, 0x45), put(frame, 16, 2, LENGTH - 14), put(frame, 22, 1, 64);
	put(frame, 23, 1, IPPROTO_UDP), put(frame, 26, 4, 0xc6120001), put(frame, 30, 4, 0xc6120002);
	for (unsigned at = 14; at < 34; at += 2)
		sum += frame[at] << 8 | frame[at + 1];
	put(frame, 24, 2, ~(sum + (sum >> 16)));
	/* Without a UDP checksum, which IPv4 permits. */
	put(frame, 34, 2, 1000 + flow), put(frame, 36, 2, 2000), put(frame, 38, 2, LENGTH - 34);
}

static int open_device(const char *name)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET};
	int on = 1, socket_ = must(socket(AF_PACKET, SOCK_RAW, 0), "socket");
	address.sll_ifindex = if_nametoindex(name);
	must(bind(socket_, (struct sockaddr *)&address, sizeof(address)), name);
	must(setsockopt(socket_, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)), "bypass");
	return socket_;
}

int main(int count, char **words)
{
	int sockets[DEVICES], devices = count - 4;
	unsigned flows = count < 5 ? 0 : atoi(words[3]), next = 0;
	if (devices < 1 || devices > DEVICES || flows < 1 || flows > FLOWS)
		return 2;
	uint64_t to = strtoull(words[1], NULL, 16), from = strtoull(words[2], NULL, 16);
	for (unsigned flow = 0; flow < flows; flow++)
		make_frame(frames[flow], to, from, flow);
	for (int nth = 0; nth < devices; nth++)
		sockets[nth] = open_device(words[4 + nth]);
	for (int nth = 0;; nth = (nth + 1) % devices) {
		struct mmsghdr messages[BATCH] = {0};
		struct iovec parts[BATCH];
		for (int at = 0; at < BATCH; at++) {
			parts[at] = (struct iovec){frames[next], LENGTH};
			messages[at].msg_hdr.msg_iov = &parts[at];
			messages[at].msg_hdr.msg_iovlen = 1;
			next = (next + 1) % flows;
		}
		/* Frames that a device cannot accept are dropped. */
		(void)sendmmsg(sockets[nth], messages, BATCH, 0);
	}
}
