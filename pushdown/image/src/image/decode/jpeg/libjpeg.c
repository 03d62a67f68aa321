/* Reads the header of a JPEG, and decodes one, through libjpeg's own interface.
 *
 * TurboJPEG's interface, which wraps the same library, has no progress callback: a decode that nobody waits for
 * would run to its end.
 */

#include "call.h"

#include <string.h>

/* Most rows that one call of jpeg_read_scanlines is offered; it writes a few at a time. */
#define ROWS 16

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
    struct pushdown_jpeg_bounds bounds;
    /* height rows of width * components bytes. */
    uint8_t *pixels;
};

struct state {
    struct call call;
    struct jpeg_decompress_struct info;
    const struct pushdown_jpeg_job *job;
};

static void read_header(struct state *state, const uint8_t *bytes, size_t length, struct pushdown_jpeg_header *header) {
    struct jpeg_decompress_struct *info = &state->info;
    if (setjmp(state->call.end))
        return;
    pushdown_jpeg_open(&state->call, info, bytes, length);
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
            pushdown_jpeg_fail(&state->call, "no row could be read");
    }
}

static void decode(struct state *state) {
    const struct pushdown_jpeg_job *job = state->job;
    struct jpeg_decompress_struct *info = &state->info;
    if (setjmp(state->call.end))
        return;
    pushdown_jpeg_open(&state->call, info, job->bytes, job->length);
    info->progress = &state->call.progress;
    info->out_color_space = job->components == 1 ? JCS_GRAYSCALE : job->components == 3 ? JCS_EXT_RGB : JCS_CMYK;
    info->dct_method = JDCT_ISLOW;
    info->do_fancy_upsampling = TRUE;
    info->scale_num = 1;
    info->scale_denom = job->divisor;
    jpeg_start_decompress(info);
    /* A lossless JPEG is not scaled, whatever is asked for. */
    if (info->output_width != job->image_width || info->output_height != job->image_height ||
        (uint32_t)info->output_components != job->components)
        pushdown_jpeg_fail(&state->call, "the image has another size than its first header");
    if (job->x != 0 || job->width != job->image_width) {
        JDIMENSION x = job->x, width = job->width;
        jpeg_crop_scanline(info, &x, &width);
        if (x != job->x || width != job->width)
            pushdown_jpeg_fail(&state->call, "the region does not start at a block");
    }
    if (job->y != 0 && jpeg_skip_scanlines(info, job->y) != job->y)
        pushdown_jpeg_fail(&state->call, "the rows above the region could not be skipped");
    read_rows(state);
    if (info->output_scanline < info->output_height)
        jpeg_skip_scanlines(info, info->output_height - info->output_scanline);
    jpeg_finish_decompress(info);
}

/* Reads the header into *header. Returns COMPLETE, WARNED, or FAILED with a message of up to JMSG_LENGTH_MAX bytes. */
int pushdown_jpeg_read_header(const uint8_t *bytes, size_t length, struct pushdown_jpeg_header *header, char *message) {
    struct state state = {.job = NULL};
    pushdown_jpeg_prepare(&state.call, NULL, message);
    read_header(&state, bytes, length, header);
    jpeg_destroy_decompress(&state.info);
    return state.call.status;
}

/* Decodes into job->pixels, and returns a status. Every byte is written, except with FAILED, CANCELLED, or WARNED if
 * stop_at_warning is set. */
int pushdown_jpeg_decode(const struct pushdown_jpeg_job *job, char *message) {
    struct state state = {.job = job};
    pushdown_jpeg_prepare(&state.call, &job->bounds, message);
    decode(&state);
    jpeg_destroy_decompress(&state.info);
    return state.call.status;
}
