/* NBD server without a disk: it only receives requests and sends replies. Its rate is the maximum
 * that a client permits to any server.
 *
 * nbd_nothing SOCKET BYTES
 *
 * It serves one client at a time, with fixed newstyle negotiation and simple replies. It reads all
 * requests that have arrived with one call and replies with one call. Before it sleeps, it polls
 * for LOOKS_NS. */
#define ROOM (8u << 20)
/* Number of bytes read at a time, which fit a CPU cache. */
#define TAKEN (256u << 10)
#define LOOKS_NS 50000
#define OPTION_MAX 4096u
#define PAYLOAD_MAX (1u << 20)

static uint8_t in[ROOM], out[ROOM];

static int answer_option(int fd, uint32_t option, uint32_t kind, const void *data, uint32_t length)
{
	struct option_reply head = { htobe64(0x3e889045565a9ull), htobe32(option), htobe32(kind),
				     htobe32(length) };
	return give(fd, &head, sizeof head) && give(fd, data, length);
}

/* Negotiates the export; returns 1 if requests follow. */
static int negotiate(int fd, uint64_t bytes)
{
	static uint8_t data[OPTION_MAX];
	struct { uint64_t magic, have_option; uint16_t flags; } __attribute__((packed))
		hello = { htobe64(0x4e42444d41474943ull), htobe64(0x49484156454f5054ull), htobe16(3) };
	uint32_t flags;
	if (!give(fd, &hello, sizeof hello) || !take(fd, &flags, sizeof flags))
		return 0;
	for (;;) {
		struct option_head head;
		if (!take(fd, &head, sizeof head))
			return 0;
		uint32_t option = be32toh(head.option), length = be32toh(head.length);
		if (length > OPTION_MAX || !take(fd, data, length))
			return 0;
		if (option == 6 || option == 7) {
			/* NBD_FLAG_HAS_FLAGS and NBD_FLAG_SEND_FLUSH. */
			struct export_info info = { 0, htobe64(bytes), htobe16(5) };
			if (!answer_option(fd, option, 3, &info, sizeof info) ||
			    !answer_option(fd, option, 1, NULL, 0))
				return 0;
			if (option == 7)
				return 1;
		} else if (option == 2) {
			answer_option(fd, option, 1, NULL, 0);
			return 0;
		} else if (!answer_option(fd, option, 0x80000001u, NULL, 0)) {
			return 0;
		}
	}
}

static ssize_t look_and_wait(int fd, void *to, size_t room)
{
	int64_t until = now_ns() + LOOKS_NS;
	for (;;) {
		ssize_t got = recv(fd, to, room, MSG_DONTWAIT);
		if (got >= 0 || (errno != EAGAIN && errno != EINTR))
			return got;
		if (now_ns() >= until)
			return recv(fd, to, room, 0);
	}
}

static void serve(int fd)
{
	size_t have = 0;
	for (;;) {
		ssize_t got = look_and_wait(fd, in + have, ROOM - have < TAKEN ? ROOM - have : TAKEN);
		if (got <= 0)
			return;
		have += (size_t)got;
		size_t at = 0, answers = 0;
		while (have - at >= sizeof(struct request)) {
			struct request request;
			memcpy(&request, in + at, sizeof request);
			uint16_t kind = be16toh(request.kind);
			uint32_t length = be32toh(request.length);
			size_t comes = kind == 1 ? length : 0, goes = kind == 0 ? length : 0;
			if (kind == 2 || length > PAYLOAD_MAX)
				return;
			if (have - at < sizeof request + comes ||
			    ROOM - answers < sizeof(struct reply) + goes)
				break;
			struct reply reply = { htobe32(0x67446698), 0, request.cookie };
			memcpy(out + answers, &reply, sizeof reply);
			answers += sizeof reply + goes;
			at += sizeof request + comes;
		}
		if (!give(fd, out, answers))
			return;
		memmove(in, in + at, have - at);
		have -= at;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { 0 };
	if (argc != 3) {
		fprintf(stderr, "nbd_nothing SOCKET BYTES\n");
		return 1;
	}
	int listening = local_socket(argv[1], &address);
	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(listening, 8) < 0) {
		perror(argv[1]);
		return 1;
	}
	for (;;) {
		int fd = accept(listening, NULL, NULL);
		if (fd < 0)
			continue;
		if (negotiate(fd, strtoull(argv[2], NULL, 10)))
			serve(fd);
		close(fd);
	}
}
