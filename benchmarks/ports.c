/* The sender and sink of switch_ports.py, and the forwarder that the switch is compared with:

   ports generate INTERFACE FILE SECONDS    sends a file's packets over and over
   ports sink INTERFACE                     counts what arrives, until standard input ends
   ports forward INTERFACE INTERFACE        moves what arrives at the first to the second

   A file's packets are each a length (32 bits, this machine's order) and the bytes. All sockets
   are set as the switch's are (switch/ports/port.py). */

#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>

enum { BATCH = 64, SLOT = 2048, HEADER = 10, QUEUE = 8 << 20, MOST = 4096 };

struct batch {
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    uint8_t slots[BATCH][SLOT];
    uint8_t controls[BATCH][CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int open_port(const char *interface, int receives) {
    int one = 1, queue = QUEUE, port = socket(AF_PACKET, SOCK_RAW, 0);
    if (port < 0) fail("socket");
    int index = if_nametoindex(interface);
    if (!index) fail(interface);
    if (receives) {
        struct packet_mreq promiscuous = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
        setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
        setsockopt(port, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one);
        setsockopt(port, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one);
        setsockopt(port, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof queue);
        setsockopt(port, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous);
    }
    setsockopt(port, SOL_SOCKET, SO_SNDBUFFORCE, &queue, sizeof queue);
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_ifindex = index,
                                  .sll_protocol = receives ? htons(ETH_P_ALL) : 0};
    if (bind(port, (struct sockaddr *) &address, sizeof address)) fail("bind");
    return port;
}

static struct batch *new_batch(void) {
    struct batch *b = calloc(1, sizeof *b);
    for (int i = 0; i < BATCH; i++) {
        b->vectors[i] = (struct iovec) {b->slots[i], SLOT};
        b->messages[i].msg_hdr = (struct msghdr) {.msg_iov = &b->vectors[i], .msg_iovlen = 1};
    }
    return b;
}

/* Set the control buffers of the packets: the switch asks for auxiliary data, too (VLAN tags). */
static void with_controls(struct batch *b) {
    for (int i = 0; i < BATCH; i++) {
        b->messages[i].msg_hdr.msg_control = b->controls[i];
        b->messages[i].msg_hdr.msg_controllen = sizeof b->controls[i];
    }
}

static void without_controls(struct batch *b) {
    for (int i = 0; i < BATCH; i++) b->messages[i].msg_hdr.msg_controllen = 0;
}

static void send_all(int port, struct mmsghdr *messages, int count) {
    while (count > 0) {
        int sent = sendmmsg(port, messages, count, 0);
        if (sent < 1) sent = 1; /* that packet is lost */
        messages += sent;
        count -= sent;
    }
}

static void generate(const char *interface, const char *path, double seconds) {
    static struct mmsghdr messages[MOST];
    static struct iovec vectors[MOST];
    int count = 0, port = open_port(interface, 0);
    uint32_t length;
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    while (count < MOST && fread(&length, sizeof length, 1, file) == 1) {
        uint8_t *packet = malloc(length);
        if (fread(packet, 1, length, file) != length) fail(path);
        vectors[count] = (struct iovec) {packet, length};
        messages[count].msg_hdr = (struct msghdr) {.msg_iov = &vectors[count], .msg_iovlen = 1};
        count++;
    }
    double end = now() + seconds;
    long sent = 0;
    while (now() < end)
        for (int at = 0; at < count; at += BATCH) {
            int some = count - at < BATCH ? count - at : BATCH;
            send_all(port, messages + at, some);
            sent += some;
        }
    printf("%ld\n", sent);
}

/* Polls every half millisecond. If it were woken for each packet, it would preempt the sender of that
   packet, and the benchmark would measure only that. */
static void sink(const char *interface) {
    struct batch *b = new_batch();
    struct pollfd input = {0, POLLIN, 0};
    int port = open_port(interface, 1);
    long count = 0;
    double first = 0, last = 0;
    printf("ready\n");
    fflush(stdout);
    while (poll(&input, 1, 0) == 0) {
        int arrived = recvmmsg(port, b->messages, BATCH, MSG_DONTWAIT, 0);
        if (arrived > 0) {
            last = now();
            if (!count) first = last;
            count += arrived;
        }
        if (arrived < BATCH) usleep(500);
    }
    printf("%ld %.6f\n", count, last - first);
}

static void forward(const char *from, const char *to) {
    struct batch *b = new_batch();
    int in = open_port(from, 1), out = open_port(to, 0);
    struct pollfd ready = {in, POLLIN, 0};
    printf("ready\n");
    fflush(stdout);
    while (poll(&ready, 1, -1) >= 0) {
        with_controls(b);
        int arrived = recvmmsg(in, b->messages, BATCH, MSG_DONTWAIT, 0);
        without_controls(b);
        for (int i = 0; i < arrived; i++)
            b->vectors[i] = (struct iovec) {b->slots[i] + HEADER, b->messages[i].msg_len - HEADER};
        send_all(out, b->messages, arrived);
        for (int i = 0; i < arrived; i++) b->vectors[i] = (struct iovec) {b->slots[i], SLOT};
    }
}

int main(int count, char **words) {
    if (count == 5 && !strcmp(words[1], "generate")) generate(words[2], words[3], atof(words[4]));
    else if (count == 3 && !strcmp(words[1], "sink")) sink(words[2]);
    else if (count == 4 && !strcmp(words[1], "forward")) forward(words[2], words[3]);
    else return 2;
    return 0;
}
