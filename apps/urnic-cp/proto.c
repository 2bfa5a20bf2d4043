/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto.h"

#include <endian.h>
#include <string.h>

#define MAGIC 0x75637031u /* "ucp1" */

/*
 * The head of every message; `length` counts the whole message. The fourth word
 * is never 0..4: with such a value tshark takes a message for RPC over RDMA, and
 * calls it malformed.
 */
struct head {
	uint32_t magic;
	uint32_t file;
	uint32_t rsvd;
	uint16_t type;
	uint16_t length;
};
_Static_assert(sizeof(struct head) == 16 && offsetof(struct head, type) == 12, "head");

struct wire_file {
	struct head head;
	uint64_t size;
	uint32_t mode;
	uint32_t name_len;
	char name[CP_NAME_MAX + 1];
};
_Static_assert(sizeof(struct wire_file) == 288, "FILE");
_Static_assert(offsetof(struct wire_file, name) == 32, "FILE");

struct wire_end {
	struct head head;
	uint32_t ok;
	uint32_t rsvd;
	uint8_t digest[CP_DIGEST];
};
_Static_assert(sizeof(struct wire_end) == 56, "END");

struct wire_credit {
	struct head head;
	uint64_t done;
};
_Static_assert(sizeof(struct wire_credit) == 24, "CREDIT");

struct wire_verdict {
	struct head head;
	uint64_t store_ns;
	uint32_t verdict;
	uint32_t text_len;
	char text[CP_TEXT_MAX + 1];
};
_Static_assert(sizeof(struct wire_verdict) == 288, "VERDICT");

union wire {
	struct head head;
	struct wire_file file;
	struct wire_end end;
	struct wire_credit credit;
	struct wire_verdict verdict;
};
_Static_assert(sizeof(union wire) <= CP_MSG_MAX, "message buffers");

/* Length of each kind of message; 0: no such kind. */
static const uint16_t lengths[] = {
	[CP_MSG_FILE] = sizeof(struct wire_file),
	[CP_MSG_END] = sizeof(struct wire_end),
	[CP_MSG_CREDIT] = sizeof(struct wire_credit),
	[CP_MSG_VERDICT] = sizeof(struct wire_verdict),
};

size_t
cp_msg_encode(const struct cp_msg *msg, uint8_t *buf)
{
	union wire w;
	size_t len = lengths[msg->type];

	memset(&w, 0, sizeof(w));
	w.head.magic = htobe32(MAGIC);
	w.head.type = htobe16((uint16_t)msg->type);
	w.head.length = htobe16((uint16_t)len);
	w.head.file = htobe32(msg->file);
	switch (msg->type) {
	case CP_MSG_FILE:
		w.file.size = htobe64(msg->announce.size);
		w.file.mode = htobe32(msg->announce.mode);
		w.file.name_len = htobe32((uint32_t)strlen(msg->announce.name));
		memcpy(w.file.name, msg->announce.name, strlen(msg->announce.name));
		break;
	case CP_MSG_END:
		w.end.ok = htobe32(msg->end.ok);
		memcpy(w.end.digest, msg->end.digest, CP_DIGEST);
		break;
	case CP_MSG_CREDIT:
		w.credit.done = htobe64(msg->credit.done);
		break;
	case CP_MSG_VERDICT:
		w.verdict.store_ns = htobe64(msg->verdict.store_ns);
		w.verdict.verdict = htobe32(msg->verdict.verdict);
		w.verdict.text_len = htobe32((uint32_t)strlen(msg->verdict.text));
		memcpy(w.verdict.text, msg->verdict.text, strlen(msg->verdict.text));
		break;
	}
	memcpy(buf, &w, len);
	return len;
}

const char *
cp_name_check(const char *name, size_t len)
{
	if (len == 0)
		return "an empty name";
	if (len > CP_NAME_MAX)
		return "a name of more than 255 bytes";
	if (memchr(name, '\0', len) != NULL)
		return "a name with a zero byte in it";
	if (memchr(name, '/', len) != NULL)
		return "a name with '/' in it";
	if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
		return "a name that means a folder";
	if (len >= strlen(CP_PART_PREFIX) &&
	    memcmp(name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) == 0)
		return "a name that is kept for unfinished files (" CP_PART_PREFIX "...)";
	return NULL;
}

static const char *
decode_file(const struct wire_file *w, struct cp_msg *msg)
{
	uint32_t len = be32toh(w->name_len);
	const char *why = len <= CP_NAME_MAX ? cp_name_check(w->name, len) : "a name too long";

	if (why != NULL)
		return why;
	msg->announce.size = be64toh(w->size);
	msg->announce.mode = be32toh(w->mode);
	if (msg->announce.size > CP_SIZE_MAX)
		return "a file of more than 2^62 bytes";
	if (msg->announce.mode > 0777)
		return "file permissions beyond 0777";
	memcpy(msg->announce.name, w->name, len);
	msg->announce.name[len] = '\0';
	return NULL;
}

static const char *
decode_end(const struct wire_end *w, struct cp_msg *msg)
{
	if (be32toh(w->ok) > 1)
		return "an END that is neither complete nor given up";
	msg->end.ok = be32toh(w->ok) == 1;
	memcpy(msg->end.digest, w->digest, CP_DIGEST);
	return NULL;
}

static const char *
decode_verdict(const struct wire_verdict *w, struct cp_msg *msg)
{
	uint32_t len = be32toh(w->text_len), verdict = be32toh(w->verdict);

	if (verdict >= CP_VERDICTS)
		return "an unknown verdict";
	if (len > CP_TEXT_MAX)
		return "a reason longer than its message";
	msg->verdict.verdict = (enum cp_verdict)verdict;
	msg->verdict.store_ns = be64toh(w->store_ns);
	memcpy(msg->verdict.text, w->text, len);
	msg->verdict.text[len] = '\0';
	return NULL;
}

static const char *
decode_body(const union wire *w, struct cp_msg *msg)
{
	switch (msg->type) {
	case CP_MSG_FILE:
		return decode_file(&w->file, msg);
	case CP_MSG_END:
		return decode_end(&w->end, msg);
	case CP_MSG_CREDIT:
		msg->credit.done = be64toh(w->credit.done);
		return NULL;
	default:
		return decode_verdict(&w->verdict, msg);
	}
}

int
cp_msg_decode(const uint8_t *buf, size_t len, struct cp_msg *msg, const char **why)
{
	union wire w;
	uint16_t type;

	*why = "a message of the wrong length";
	if (len < sizeof(w.head) || len > sizeof(w))
		return -1;
	memset(&w, 0, sizeof(w));
	memcpy(&w, buf, len);
	type = be16toh(w.head.type);
	*why = "a message that is not urnic-cp's";
	if (be32toh(w.head.magic) != MAGIC)
		return -1;
	*why = "a message of an unknown kind";
	if (type >= sizeof(lengths) / sizeof(lengths[0]) || lengths[type] == 0)
		return -1;
	*why = "a message of the wrong length";
	if (len != lengths[type] || be16toh(w.head.length) != len)
		return -1;
	memset(msg, 0, sizeof(*msg));
	msg->type = (enum cp_msg_type)type;
	msg->file = be32toh(w.head.file);
	*why = decode_body(&w, msg);
	return *why == NULL ? 0 : -1;
}

char *
cp_text_clean(char *dst, size_t n, const char *src)
{
	size_t i = 0;

	for (; src[i] != '\0' && i + 1 < n; i++) {
		unsigned char c = (unsigned char)src[i];

		/* Bytes from 0x80 on are kept: UTF-8, which file names use. */
		dst[i] = (char)(c < 0x20 || c == 0x7f ? '?' : src[i]);
	}
	if (n > 0)
		dst[i] = '\0';
	return dst;
}
