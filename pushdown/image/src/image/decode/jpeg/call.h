/* What calls of libjpeg have in common: statuses, errors, and the checks between rows of blocks.
 *
 * libjpeg ends a call by longjmp, which must not cross Rust: each function that Rust calls sets `end` first.
 */

#ifndef PUSHDOWN_JPEG_CALL_H
#define PUSHDOWN_JPEG_CALL_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

enum status { COMPLETE = 0, WARNED = 1, FAILED = 2, CANCELLED = 3 };

/* What ends a call early. */
struct pushdown_jpeg_bounds {
    uint32_t max_scans;
    uint32_t stop_at_warning;
    /* Called at least once per row of blocks and scan. */
    uint32_t (*is_cancelled)(const void *cancellation);
    const void *cancellation;
};

/* The client data of the objects of libjpeg that a call creates. */
struct call {
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    jmp_buf end;
    /* NULL while only a header is read. */
    const struct pushdown_jpeg_bounds *bounds;
    enum status status;
    /* JMSG_LENGTH_MAX bytes. */
    char *message;
};

void pushdown_jpeg_prepare(struct call *call, const struct pushdown_jpeg_bounds *bounds, char *message);

void pushdown_jpeg_end(struct call *call, enum status status);

void pushdown_jpeg_fail(struct call *call, const char *message);

/* The progress callback: ends the call if it is cancelled, or if there are too many scans. */
void pushdown_jpeg_check(j_common_ptr info);

/* Creates *info, and reads the header of the file. */
void pushdown_jpeg_open(struct call *call, j_decompress_ptr info, const uint8_t *bytes, size_t length);

#endif
