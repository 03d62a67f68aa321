/* Reads the header of a JPEG, and decodes one, through libjpeg's own interface.
 *
 * TurboJPEG's interface, which wraps the same library, has no progress callback: a decode that nobody waits for
 * would run to its end. libjpeg ends a call by longjmp, which must not cross Rust, so that these functions are C.
 */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

/* Most rows that one call of jpeg_read_scanlines is offered; it writes a few at a time. */
#define ROWS 16

enum status { COMPLETE = 0, WARNED = 1, FAILED = 2, CANCELLED = 3 };

struct pushdown_jpeg_header {
    uint32_t width;
    uint32_t height;
    /* 1: grey, 3: RGB or YCbCr, 4: CMYK or YCCK, 0: a colour space without a name. */
    uint32_t components;
    uint32_t is_progressive;
    uint32_t is_arithmetic;
};

struct pushdown_jpeg_job {
    const uint8_t *bytes;
    size_t length;
    /* The image is decoded at 1/divisor of each side, which makes it this large. */
    uint32_t divisor;
    uint32_t image_width;
    uint32_t image_height;
    /* The region of it to write; x is a multiple of the block size. */
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
    /* 1: grey, 3: RGB, 4: CMYK as stored. */
    uint32_t components;
    uint32_t max_scans;
    uint32_t stop_at_warning;
    /* Called at least once per row of blocks and scan. */
    uint32_t (*is_cancelled)(const void *cancellation);
    const void *cancellation;
    /* height rows of width * components bytes. */
    uint8_t *pixels;
};

struct state {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    jmp_buf end;
    const struct pushdown_jpeg_job *job;
    enum status status;
    /* JMSG_LENGTH_MAX bytes. */
    char *message;
};

static void end(struct state *state, enum status status) {
    state->status = status;
    longjmp(state->end, 1);
}

static void fail(struct state *state, const char *message) {
    snprintf(state->message, JMSG_LENGTH_MAX, "%s", message);
    end(state, FAILED);
}

static void on_error(j_common_ptr info) {
    struct state *state = info->client_data;
    state->error.format_message(info, state->message);
    end(state, FAILED);
}

/* Negative levels are warnings, the others traces. */
static void on_message(j_common_ptr info, int level) {
    struct state *state = info->client_data;
    if (level >= 0)
        return;
    state->status = WARNED;
    if (state->job && state->job->stop_at_warning)
        end(state, WARNED);
}

static void on_progress(j_common_ptr info) {
    struct state *state = info->client_data;
    if (state->info.input_scan_number > (int)state->job->max_scans)
        fail(state, "found more scans than were counted");
    if (state->job->is_cancelled(state->job->cancellation))
        end(state, CANCELLED);
}

static void start(struct state *state, const uint8_t *bytes, size_t length) {
    jpeg_create_decompress(&state->info);
    state->info.client_data = state;
    jpeg_mem_src(&state->info, bytes, (unsigned long)length);
    jpeg_read_header(&state->info, TRUE);
}

static void read_header(struct state *state, const uint8_t *bytes, size_t length, struct pushdown_jpeg_header *header) {
    struct jpeg_decompress_struct *info = &state->info;
    if (setjmp(state->end))
        return;
    start(state, bytes, length);
    header->width = info->image_width;
    header->height = info->image_height;
    header->is_progressive = info->progressive_mode != 0;
    header->is_arithmetic = info->arith_code != 0;
    switch (info->jpeg_color_space) {
    case JCS_GRAYSCALE:
        header->components = 1;
        break;
    case JCS_RGB:
    case JCS_YCbCr:
        header->components = 3;
        break;
    case JCS_CMYK:
    case JCS_YCCK:
        header->components = 4;
        break;
    default:
        header->components = 0;
    }
}

static void read_rows(struct state *state) {
    const struct pushdown_jpeg_job *job = state->job;
    struct jpeg_decompress_struct *info = &state->info;
    size_t stride = (size_t)job->width * job->components;
    while (info->output_scanline < job->y + job->height) {
        JSAMPROW rows[ROWS];
        JDIMENSION first = info->output_scanline - job->y, count = job->height - first;
        if (count > ROWS)
            count = ROWS;
        for (JDIMENSION row = 0; row < count; row++)
            rows[row] = job->pixels + (first + row) * stride;
        if (jpeg_read_scanlines(info, rows, count) == 0)
            fail(state, "no row could be read");
    }
}

static void decode(struct state *state) {
    const struct pushdown_jpeg_job *job = state->job;
    struct jpeg_decompress_struct *info = &state->info;
    if (setjmp(state->end))
        return;
    start(state, job->bytes, job->length);
    state->progress.progress_monitor = on_progress;
    info->progress = &state->progress;
    info->out_color_space = job->components == 1 ? JCS_GRAYSCALE : job->components == 3 ? JCS_EXT_RGB : JCS_CMYK;
    info->dct_method = JDCT_ISLOW;
    info->do_fancy_upsampling = TRUE;
    info->scale_num = 1;
    info->scale_denom = job->divisor;
    jpeg_start_decompress(info);
    /* A lossless JPEG is not scaled, whatever is asked for. */
    if (info->output_width != job->image_width || info->output_height != job->image_height ||
        (uint32_t)info->output_components != job->components)
        fail(state, "the image has another size than its first header");
    if (job->x != 0 || job->width != job->image_width) {
        JDIMENSION x = job->x, width = job->width;
        jpeg_crop_scanline(info, &x, &width);
        if (x != job->x || width != job->width)
            fail(state, "the region does not start at a block");
    }
    if (job->y != 0 && jpeg_skip_scanlines(info, job->y) != job->y)
        fail(state, "the rows above the region could not be skipped");
    read_rows(state);
    if (info->output_scanline < info->output_height)
        jpeg_skip_scanlines(info, info->output_height - info->output_scanline);
    jpeg_finish_decompress(info);
}

static void prepare(struct state *state, const struct pushdown_jpeg_job *job, char *message) {
    memset(state, 0, sizeof *state);
    state->job = job;
    state->message = message;
    state->info.err = jpeg_std_error(&state->error);
    state->info.client_data = state;
    state->error.error_exit = on_error;
    state->error.emit_message = on_message;
}

/* Reads the header into *header. Returns COMPLETE, WARNED, or FAILED with a message of up to JMSG_LENGTH_MAX bytes. */
int pushdown_jpeg_read_header(const uint8_t *bytes, size_t length, struct pushdown_jpeg_header *header, char *message) {
    struct state state;
    prepare(&state, NULL, message);
    read_header(&state, bytes, length, header);
    jpeg_destroy_decompress(&state.info);
    return state.status;
}

/* Decodes into job->pixels, and returns a status. Every byte is written, except with FAILED, CANCELLED, or WARNED if
 * stop_at_warning is set. */
int pushdown_jpeg_decode(const struct pushdown_jpeg_job *job, char *message) {
    struct state state;
    prepare(&state, job, message);
    decode(&state);
    jpeg_destroy_decompress(&state.info);
    return state.status;
}
