/* Sends large TCP/IPv4 frames from one VM's NIC to another's at the rate that the switch
 * accepts, and measures the rate of copying these frames between VMs without a switch.
 *
 * large_frames EAL-OPTIONS -- IN_FLIGHT WARM_UP WINDOW COPY
 *
 * The options name two virtio-user devices, net_virtio_user0 and 1, and two CPUs: the
 * first runs the main thread, the second simulates the VMs. The program prints `ready` when
 * both links are up and the switch has learned both addresses. It begins when it reads a
 * line from standard input. Frames are sent from port 0 to port 1 for WARM_UP and then
 * WINDOW seconds, with at most IN_FLIGHT sent frames that have not been received. The
 * receiver provides as many buffers, each for a whole frame. Each received frame must be
 * the expected one: in one piece, of the full length, with the partial checksum and the
 * segment size of its sender. Any other frame ends the program with a message.
 *
 * The program prints `switched GIGABYTES_PER_SECOND`. If COPY is not 0, it then stops both
 * ports, and the main CPU copies for COPY seconds from all of the sender's buffers to all of
 * the receiver's in turn, with memcpy of the C library and with that of DPDK. The higher rate
 * is printed as `copied GIGABYTES_PER_SECOND BUFFERS_FROM BUFFERS_TO`. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memcpy.h>
#include <rte_tcp.h>

/* Payload of a segment with an MTU of 1500 and TCP timestamps. */
#define SEGMENT 1448
#define TCP_HEADER (sizeof(struct rte_tcp_hdr) + 12)
#define HEADERS (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + TCP_HEADER)
/* The maximum number of whole segments in an IPv4 packet. */
#define LENGTH (HEADERS + 45 * SEGMENT)
#define RING 256
#define BURST 8
#define LIMIT 5.0

enum { SENDER, RECEIVER };

/* Pools of the sender's and the receiver's buffers, and a pool of small buffers. */
static struct rte_mempool *pools[2], *small_pool;
static unsigned under_way_max;
static double warm_up, window;
static double switched;
/* The frame that is sent. Its TCP sequence number is the number of the frame. */
static uint8_t frame[LENGTH];
/* Addresses of the data of each pool's buffers, filled by remember(). */
static void *places[2][2 * RING];
static unsigned places_known[2];

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

#define fail(...) do { \
	fprintf(stderr, "large_frames: " __VA_ARGS__); \
	fputc('\n', stderr); \
	exit(1); \
} while (0)

static void remember(struct rte_mempool *pool, void *port, void *object, unsigned index)
{
	struct rte_mbuf *mbuf = object;
	unsigned of = (uintptr_t)port;
	(void)pool;
	(void)index;
	places[of][places_known[of]++] = (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM;
}

static void prepare_buffer(struct rte_mempool *pool, void *nothing, void *object, unsigned index)
{
	struct rte_mbuf *mbuf = object;
	(void)pool;
	(void)nothing;
	(void)index;
	memcpy((uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM, frame, LENGTH);
}

static struct rte_tcp_hdr *tcp_of(void *bytes)
{
	return (void *)((uint8_t *)bytes + sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr));
}

/* Creates headers with a partial checksum, and a payload without repetition. */
static void make_frame(void)
{
	struct rte_ether_hdr *ethernet = (void *)frame;
	struct rte_ipv4_hdr *ip = (void *)(ethernet + 1);
	struct rte_tcp_hdr *tcp = tcp_of(frame);
	uint32_t random = 1;
	for (size_t at = 0; at < LENGTH; at++) {
		random = random * 1664525 + 1013904223;
		frame[at] = random >> 24;
	}
	memset(frame, 0, HEADERS);
	rte_eth_macaddr_get(RECEIVER, &ethernet->dst_addr);
	rte_eth_macaddr_get(SENDER, &ethernet->src_addr);
	ethernet->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16(LENGTH - sizeof *ethernet);
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_TCP;
	ip->src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 1));
	ip->dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 2));
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	tcp->src_port = rte_cpu_to_be_16(1000);
	tcp->dst_port = rte_cpu_to_be_16(2000);
	tcp->data_off = TCP_HEADER / 4 << 4;
	tcp->tcp_flags = RTE_TCP_ACK_FLAG;
	tcp->rx_win = rte_cpu_to_be_16(65535);
	/* Options: two fillers, then timestamps. */
	memcpy(tcp + 1, "\1\1\x08\x0a", 4);
	/* The pseudo-header's sum includes the length in virtio; DPDK's segmentation flag omits it. */
	tcp->cksum = rte_ipv4_phdr_cksum(ip, 0);
}

static struct rte_mempool *make_pool(const char *name, unsigned buffers, uint16_t bytes)
{
	/* Without a cache, buffers are allocated in turn, so that all of them are used. */
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, buffers, 0, 0, bytes, SOCKET_ID_ANY);
	if (!pool)
		fail("no memory for %u buffers of %u bytes", buffers, bytes);
	return pool;
}

static void open_port(uint16_t port)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	if (rte_eth_dev_info_get(port, &info))
		fail("port %u is not there", port);
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_TCP_LRO | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	if (conf.txmode.offloads & ~info.tx_offload_capa)
		fail("the switch does not take large frames from port %u", port);
	if (conf.rxmode.offloads & ~info.rx_offload_capa)
		fail("the switch does not hand large frames to port %u", port);
	if (rte_eth_dev_configure(port, 1, 1, &conf))
		fail("port %u cannot be configured", port);
	/* Sent buffers are freed at once. */
	struct rte_eth_txconf tx = info.default_txconf;
	tx.tx_free_thresh = RING - 4;
	tx.offloads = conf.txmode.offloads;
	if (rte_eth_rx_queue_setup(port, 0, under_way_max, SOCKET_ID_ANY, NULL,
				   port == RECEIVER ? pools[port] : small_pool) ||
	    rte_eth_tx_queue_setup(port, 0, RING, SOCKET_ID_ANY, &tx) || rte_eth_dev_start(port))
		fail("port %u cannot be started", port);
}

static void await_links(void)
{
	double began = now();
	for (uint16_t port = 0; port < 2; port++) {
		struct rte_eth_link link = {0};
		do {
			if (now() - began > 30)
				fail("no link on port %u", port);
			rte_eth_link_get_nowait(port, &link);
			rte_delay_us_sleep(10000);
		} while (!link.link_status);
	}
}

/* Sends short frames in both directions until one has arrived in each. */
static void introduce(void)
{
	bool known[2] = {false, false};
	double began = now();
	while (!known[0] || !known[1]) {
		if (now() - began > LIMIT)
			fail("no frame at all passes the switch");
		for (uint16_t port = 0; port < 2; port++) {
			struct rte_mbuf *got[BURST], *mbuf = rte_pktmbuf_alloc(small_pool);
			struct rte_ether_hdr *ethernet;
			if (mbuf) {
				ethernet = (void *)rte_pktmbuf_append(mbuf, 60);
				memset(ethernet, 0, 60);
				rte_eth_macaddr_get(port, &ethernet->src_addr);
				rte_eth_macaddr_get(!port, &ethernet->dst_addr);
				ethernet->ether_type = rte_cpu_to_be_16(0x88b5);
				if (rte_eth_tx_burst(port, 0, &mbuf, 1) != 1)
					rte_pktmbuf_free(mbuf);
			}
			rte_delay_us_sleep(10000);
			uint16_t count = rte_eth_rx_burst(!port, 0, got, BURST);
			known[port] |= count > 0;
			rte_pktmbuf_free_bulk(got, count);
		}
	}
	/* Discards the short frames that are still in flight. */
	rte_delay_us_sleep(100000);
	for (uint16_t port = 0; port < 2; port++) {
		struct rte_mbuf *got[BURST];
		uint16_t count;
		while ((count = rte_eth_rx_burst(port, 0, got, BURST)))
			rte_pktmbuf_free_bulk(got, count);
	}
}

/* Compares all bytes with the sent ones. Some switches remove the length from the partial
 * checksum, which is DPDK's convention for large frames. */
static void compare(uint8_t *bytes)
{
	struct rte_tcp_hdr *tcp = tcp_of(bytes), *sent = tcp_of(frame);
	const void *ip = frame + sizeof(struct rte_ether_hdr);
	if (tcp->cksum == rte_ipv4_phdr_cksum(ip, RTE_MBUF_F_TX_TCP_SEG))
		tcp->cksum = sent->cksum;
	for (size_t at = 0; at < LENGTH; at++)
		if (bytes[at] != frame[at])
			fail("byte %zu of the first frame arrived as %#x, not as %#x", at, bytes[at],
			     frame[at]);
}

/* Checks that a received frame is complete, unchanged and the expected one. */
static void check(struct rte_mbuf *mbuf, uint32_t expected)
{
	const uint64_t large = RTE_MBUF_F_RX_LRO | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	if (mbuf->pkt_len != LENGTH || mbuf->nb_segs != 1)
		fail("a frame of %u bytes in %u buffers arrived, not one of %zu in one",
		     mbuf->pkt_len, mbuf->nb_segs, (size_t)LENGTH);
	if ((mbuf->ol_flags & large) != large || mbuf->tso_segsz != SEGMENT)
		fail("a frame arrived without its segment size or its partial checksum "
		     "(flags %#lx, segment size %u)", (unsigned long)mbuf->ol_flags, mbuf->tso_segsz);
	struct rte_tcp_hdr *tcp = tcp_of(rte_pktmbuf_mtod(mbuf, void *));
	uint32_t sequence = rte_be_to_cpu_32(tcp->sent_seq);
	if (sequence != expected)
		fail("frame %u arrived, not %u", sequence, expected);
	if (expected == 0)
		compare(rte_pktmbuf_mtod(mbuf, uint8_t *));
}

static unsigned send_burst(uint32_t next, unsigned count)
{
	struct rte_mbuf *out[BURST];
	if (count > BURST)
		count = BURST;
	if (!count || rte_pktmbuf_alloc_bulk(pools[SENDER], out, count))
		return 0;
	for (unsigned at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = out[at];
		mbuf->data_len = LENGTH;
		mbuf->pkt_len = LENGTH;
		mbuf->ol_flags = RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IPV4;
		mbuf->l2_len = sizeof(struct rte_ether_hdr);
		mbuf->l3_len = sizeof(struct rte_ipv4_hdr);
		mbuf->l4_len = TCP_HEADER;
		mbuf->tso_segsz = SEGMENT;
		tcp_of(rte_pktmbuf_mtod(mbuf, void *))->sent_seq = rte_cpu_to_be_32(next + at);
	}
	unsigned sent = rte_eth_tx_burst(SENDER, 0, out, count);
	rte_pktmbuf_free_bulk(out + sent, count - sent);
	return sent;
}

static int circulate(void *nothing)
{
	uint32_t sent = 0, received = 0, counted = 0;
	double began = now(), heard = began, first = 0, last = 0;
	(void)nothing;
	for (;;) {
		struct rte_mbuf *got[BURST];
		sent += send_burst(sent, under_way_max - (sent - received));
		uint16_t count = rte_eth_rx_burst(RECEIVER, 0, got, BURST);
		double at = now();
		for (uint16_t nth = 0; nth < count; nth++)
			check(got[nth], received + nth);
		rte_pktmbuf_free_bulk(got, count);
		received += count;
		if (count)
			heard = at;
		else if (at - heard > LIMIT)
			fail("%u frames were sent, %u arrived, then none", sent, received);
		if (!first && at - began > warm_up) {
			first = at;
			counted = received;
		}
		if (first && at - first > window) {
			last = at;
			break;
		}
	}
	if (received == counted)
		fail("%u frames were sent, %u arrived, none of them within the window", sent, received);
	switched = (double)(received - counted) * LENGTH / (last - first) / 1e9;
	return 0;
}

typedef void *copy_function(void *, const void *, size_t);

static void *copy_by_dpdk(void *to, const void *from, size_t length)
{
	return rte_memcpy(to, from, length);
}

static double copy_rate(copy_function *copy, double seconds)
{
	uint64_t rounds = 0;
	double began = now(), at;
	do {
		for (unsigned nth = 0; nth < 64; nth++, rounds++)
			copy(places[RECEIVER][rounds % places_known[RECEIVER]],
			     places[SENDER][rounds % places_known[SENDER]], LENGTH);
		at = now();
	} while (at - began < seconds);
	return (double)rounds * LENGTH / (at - began) / 1e9;
}

static double faster(double a, double b)
{
	return a > b ? a : b;
}

int main(int count, char **words)
{
	int own = rte_eal_init(count, words);
	if (own < 0)
		fail("EAL does not start");
	if (count - own != 5)
		fail("wants IN_FLIGHT WARM_UP WINDOW COPY");
	under_way_max = strtoul(words[own + 1], NULL, 10);
	warm_up = strtod(words[own + 2], NULL);
	window = strtod(words[own + 3], NULL);
	double copy = strtod(words[own + 4], NULL);
	if (!under_way_max || under_way_max > RING)
		fail("1 to %u frames can be under way", RING);
	if (rte_eth_dev_count_avail() != 2)
		fail("two ports are needed");
	small_pool = make_pool("small", 4 * RING, RTE_MBUF_DEFAULT_BUF_SIZE);
	/* Frames may arrive before their send buffers are freed, and the next burst is
	 * allocated before the check for freed ones. */
	pools[SENDER] = make_pool("from", under_way_max + 3 * BURST, UINT16_MAX);
	pools[RECEIVER] = make_pool("to", under_way_max + BURST, UINT16_MAX);
	for (uint16_t port = 0; port < 2; port++)
		open_port(port);
	await_links();
	introduce();
	make_frame();
	rte_mempool_obj_iter(pools[SENDER], prepare_buffer, NULL);
	rte_mempool_obj_iter(pools[SENDER], remember, (void *)SENDER);
	rte_mempool_obj_iter(pools[RECEIVER], remember, (void *)RECEIVER);
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		fail("nobody says when to begin");
	unsigned vms = rte_get_next_lcore(-1, 1, 0);
	if (vms == RTE_MAX_LCORE || rte_eal_remote_launch(circulate, NULL, vms))
		fail("two CPUs are needed");
	/* DPDK's wait function would poll on the CPU of the switch. */
	while (rte_eal_get_lcore_state(vms) == RUNNING)
		rte_delay_us_sleep(10000);
	printf("switched %f\n", switched);
	if (copy > 0) {
		rte_eth_dev_stop(SENDER);
		rte_eth_dev_stop(RECEIVER);
		copy_rate(memcpy, copy / 4);
		double best = faster(copy_rate(memcpy, copy), copy_rate(copy_by_dpdk, copy));
		printf("copied %f %u %u\n", best, places_known[SENDER], places_known[RECEIVER]);
	}
	fflush(stdout);
	return 0;
}
