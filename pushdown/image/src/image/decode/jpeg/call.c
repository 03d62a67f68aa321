#include "call.h"

#include <string.h>

void pushdown_jpeg_end(struct call *call, enum status status) {
    call->status = status;
    longjmp(call->end, 1);
}

void pushdown_jpeg_fail(struct call *call, const char *message) {
    snprintf(call->message, JMSG_LENGTH_MAX, "%s", message);
    pushdown_jpeg_end(call, FAILED);
}

static void on_error(j_common_ptr info) {
    struct call *call = info->client_data;
    call->error.format_message(info, call->message);
    pushdown_jpeg_end(call, FAILED);
}

/* Negative levels are warnings, the others traces. */
static void on_message(j_common_ptr info, int level) {
    struct call *call = info->client_data;
    if (level >= 0)
        return;
    call->status = WARNED;
    if (call->bounds && call->bounds->stop_at_warning)
        pushdown_jpeg_end(call, WARNED);
}

void pushdown_jpeg_check(j_common_ptr info) {
    struct call *call = info->client_data;
    if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > (int)call->bounds->max_scans)
        pushdown_jpeg_fail(call, "found more scans than were counted");
    if (call->bounds->is_cancelled(call->bounds->cancellation))
        pushdown_jpeg_end(call, CANCELLED);
}

void pushdown_jpeg_prepare(struct call *call, const struct pushdown_jpeg_bounds *bounds, char *message) {
    memset(call, 0, sizeof *call);
    call->bounds = bounds;
    call->message = message;
    jpeg_std_error(&call->error);
    call->error.error_exit = on_error;
    call->error.emit_message = on_message;
    call->progress.progress_monitor = pushdown_jpeg_check;
}

void pushdown_jpeg_open(struct call *call, j_decompress_ptr info, const uint8_t *bytes, size_t length) {
    info->err = &call->error;
    info->client_data = call;
    jpeg_create_decompress(info);
    jpeg_mem_src(info, bytes, (unsigned long)length);
    jpeg_read_header(info, TRUE);
}
