/* NBD client that uses little CPU time, so that the server determines the rate of requests.
 *
 * nbd_client SOCKET EXPORT read|write DEPTH BLOCK MIB SECONDS
 *
 * The client keeps DEPTH requests outstanding, of BLOCK bytes at random offsets of a disk of MIB MiB. It
 * reads all replies that have arrived with one call and sends as many new requests with one call. It does
 * not check the data. It prints the number of completed requests and their rate per second. */

#define ROOM (1u << 20)
#define DEPTH_MAX 256u
#define BLOCK_MAX 65536u
#define REQUEST_MAGIC 0x25609513u
#define REPLY_MAGIC 0x67446698u

static uint8_t in[ROOM], out[DEPTH_MAX * (sizeof(struct request) + BLOCK_MAX)];

static int choose_export(int fd, const char *name)
{
	static uint8_t data[4096];
	struct { uint64_t magic, have_option; uint16_t flags; } __attribute__((packed)) hello;
	struct { uint32_t flags; uint64_t magic; uint32_t option, length, name; } __attribute__((packed))
		head = { htobe32(3), htobe64(0x49484156454f5054ull), htobe32(7),
			 htobe32((uint32_t)strlen(name) + 6), htobe32((uint32_t)strlen(name)) };
	uint16_t infos = 0;
	if (!take(fd, &hello, sizeof hello) || !give(fd, &head, sizeof head) ||
	    !give(fd, name, strlen(name)) || !give(fd, &infos, sizeof infos))
		return 0;
	for (;;) {
		struct option_reply reply;
		if (!take(fd, &reply, sizeof reply) || be32toh(reply.length) > sizeof data ||
		    !take(fd, data, be32toh(reply.length)) || be32toh(reply.kind) >> 31)
			return 0;
		if (be32toh(reply.kind) == 1)
			return 1;
	}
}

/* Sends `count` further requests. */
static int ask(int fd, int is_write, uint32_t count, uint32_t block, uint64_t blocks)
{
	static uint64_t random = 88172645463325252ull, cookie;
	size_t each = sizeof(struct request) + (is_write ? block : 0);
	for (uint32_t nth = 0; nth < count; nth++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		struct request request = { htobe32(REQUEST_MAGIC), 0, htobe16(is_write ? 1 : 0), cookie++,
					   htobe64(random % blocks * block), htobe32(block) };
		memcpy(out + nth * each, &request, sizeof request);
	}
	return give(fd, out, count * each);
}

/* Sends requests until `until` and returns the number of completed ones; -1: a request failed. */
static int64_t keep_asking(int fd, int is_write, uint32_t depth, uint32_t block, uint64_t blocks,
			   int64_t until)
{
	size_t each = sizeof(struct reply) + (is_write ? 0 : block), have = 0;
	int64_t asked = depth, answered = 0;
	if (!ask(fd, is_write, depth, block, blocks))
		return -1;
	while (answered < asked) {
		ssize_t got = recv(fd, in + have, ROOM - have, 0);
		if (got <= 0)
			return -1;
		have += (size_t)got;
		uint32_t count = (uint32_t)(have / each);
		for (uint32_t nth = 0; nth < count; nth++) {
			struct reply reply;
			memcpy(&reply, in + nth * each, sizeof reply);
			if (be32toh(reply.magic) != REPLY_MAGIC || reply.error != 0)
				return -1;
		}
		have -= count * each;
		memmove(in, in + count * each, have);
		answered += count;
		if (count == 0 || now_ns() >= until)
			continue;
		if (!ask(fd, is_write, count, block, blocks))
			return -1;
		asked += count;
	}
	/* Servers expect NBD_CMD_DISC before the end of the connection. */
	struct request end = { htobe32(REQUEST_MAGIC), 0, htobe16(2), 0, 0, 0 };
	return give(fd, &end, sizeof end) ? answered : -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { 0 };
	if (argc != 8) {
		fprintf(stderr, "nbd_client SOCKET EXPORT read|write DEPTH BLOCK MIB SECONDS\n");
		return 1;
	}
	uint32_t depth = (uint32_t)atoi(argv[4]), block = (uint32_t)atoi(argv[5]);
	uint64_t blocks = block ? ((uint64_t)atoi(argv[6]) << 20) / block : 0;
	if (depth == 0 || depth > DEPTH_MAX || block == 0 || block > BLOCK_MAX || blocks == 0) {
		fprintf(stderr, "at most %u requests of %u bytes\n", DEPTH_MAX, BLOCK_MAX);
		return 1;
	}
	int fd = local_socket(argv[1], &address);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		perror(argv[1]);
		return 1;
	}
	if (!choose_export(fd, argv[2])) {
		fprintf(stderr, "%s does not offer %s\n", argv[1], argv[2]);
		return 1;
	}
	int64_t began = now_ns(), until = began + atoi(argv[7]) * 1000000000ll;
	int64_t answered = keep_asking(fd, argv[3][0] == 'w', depth, block, blocks, until);
	if (answered < 0) {
		fprintf(stderr, "a request failed\n");
		return 1;
	}
	printf("%lld %.0f\n", (long long)answered, (double)answered * 1e9 / (double)(now_ns() - began));
	return 0;
}
