/* Copies some blocks of a JPEG into another one, without decoding them.
 *
 * The blocks are the coefficients that Huffman codes stand for: they are read, moved and written again by libjpeg.
 */

#include "call.h"

#include <string.h>

struct pushdown_jpeg_crop_job {
    const uint8_t *bytes;
    size_t length;
    uint32_t image_width;
    uint32_t image_height;
    /* The pixels to copy. They start at a block of all components (MCU), and end at one or at the end of the image. */
    uint32_t x;
    uint32_t y;
    uint32_t width;
    uint32_t height;
    /* Whether nothing below these pixels is read. Requires a file of one scan. */
    uint32_t stop_below;
    struct pushdown_jpeg_bounds bounds;
    /* Room for the new file. */
    uint8_t *output;
    size_t capacity;
};

struct crop {
    /* First, since it is the client data. */
    struct call call;
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
    struct jpeg_destination_mgr destination;
    const struct pushdown_jpeg_crop_job *job;
};

static JDIMENSION divide_up(uint64_t number, uint64_t divisor) {
    return (JDIMENSION)((number + divisor - 1) / divisor);
}

static void init_destination(j_compress_ptr to) {
    struct crop *crop = to->client_data;
    to->dest->next_output_byte = crop->job->output;
    to->dest->free_in_buffer = crop->job->capacity;
}

static boolean empty_output_buffer(j_compress_ptr to) {
    pushdown_jpeg_fail(to->client_data, "the cropped file is too large");
    return FALSE;
}

static void term_destination(j_compress_ptr to) {
    (void)to;
}

/* Reads coefficients as in buffered-image mode, which needs no output, so that it can end within a scan. */
static jvirt_barray_ptr *read_blocks(struct crop *crop) {
    const struct pushdown_jpeg_crop_job *job = crop->job;
    j_decompress_ptr from = &crop->from;
    pushdown_jpeg_open(&crop->call, from, job->bytes, job->length);
    if (from->image_width != job->image_width || from->image_height != job->image_height)
        pushdown_jpeg_fail(&crop->call, "the image has another size than its first header");
    if (from->data_precision != 8 || from->arith_code)
        pushdown_jpeg_fail(&crop->call, "the coding is not that of a cropped file");
    from->progress = &crop->call.progress;
    from->buffered_image = TRUE;
    jpeg_start_decompress(from);
    JDIMENSION rows = divide_up((uint64_t)job->y + job->height, 8 * (uint64_t)from->max_v_samp_factor);
    while (!job->stop_below || from->input_iMCU_row < rows) {
        pushdown_jpeg_check((j_common_ptr)from);
        int result = jpeg_consume_input(from);
        if (result == JPEG_REACHED_EOI)
            break;
        if (result == JPEG_SUSPENDED)
            pushdown_jpeg_fail(&crop->call, "no row of blocks could be read");
    }
    return jpeg_read_coefficients(from);
}

/* libjpeg estimates coefficients that the scans of a progressive file do not state exactly from blocks around them. */
static void check_precision(struct crop *crop) {
    j_decompress_ptr from = &crop->from;
    if (!from->progressive_mode)
        return;
    for (int component = 0; component < from->num_components; component++)
        for (int index = 0; index < DCTSIZE2; index++)
            if (from->coef_bits[component][index] != 0)
                pushdown_jpeg_fail(&crop->call, "the scans do not state all coefficients");
}

/* Whether the standard Huffman tables have codes for the blocks: AC coefficients of 10 bits, and differences of DC coefficients
 * of 11 bits. libjpeg checks that only where it computes tables, which takes longer than decoding the image. */
static int are_codable(JBLOCKROW blocks, JDIMENSION count) {
    unsigned found = 0;
    for (JDIMENSION index = 0; index < count; index++) {
        const JCOEF *block = blocks[index];
        found |= block[0] < -1024 || block[0] > 1023;
        for (int at = 1; at < DCTSIZE2; at++)
            found |= (uint16_t)(block[at] + 1023) > 2046;
    }
    return !found;
}

/* Moves the blocks of the crop to the start of their arrays, so that no second array is needed. libjpeg has them in memory: it is
 * built without files for them. */
static void move_blocks(struct crop *crop, jvirt_barray_ptr *arrays) {
    const struct pushdown_jpeg_crop_job *job = crop->job;
    j_decompress_ptr from = &crop->from;
    j_common_ptr info = (j_common_ptr)from;
    for (int index = 0; index < from->num_components; index++) {
        const jpeg_component_info *component = &from->comp_info[index];
        uint64_t h = (uint64_t)component->h_samp_factor, max_h = 8 * (uint64_t)from->max_h_samp_factor;
        uint64_t v = (uint64_t)component->v_samp_factor, max_v = 8 * (uint64_t)from->max_v_samp_factor;
        JDIMENSION x = (JDIMENSION)(job->x * h / max_h), y = (JDIMENSION)(job->y * v / max_v);
        JDIMENSION columns = divide_up(job->width * h, max_h), rows = divide_up(job->height * v, max_v);
        for (JDIMENSION row = 0; row < rows; row++) {
            JBLOCKROW source = from->mem->access_virt_barray(info, arrays[index], y + row, 1, FALSE)[0] + x;
            JBLOCKROW target = from->mem->access_virt_barray(info, arrays[index], row, 1, TRUE)[0];
            memmove(target, source, columns * sizeof(JBLOCK));
            if (!are_codable(target, columns))
                pushdown_jpeg_fail(&crop->call, "a coefficient has no Huffman code");
            pushdown_jpeg_check(info);
        }
    }
}

static void write_blocks(struct crop *crop, jvirt_barray_ptr *arrays) {
    j_compress_ptr to = &crop->to;
    to->err = &crop->call.error;
    to->client_data = &crop->call;
    jpeg_create_compress(to);
    crop->destination.init_destination = init_destination;
    crop->destination.empty_output_buffer = empty_output_buffer;
    crop->destination.term_destination = term_destination;
    to->dest = &crop->destination;
    to->progress = &crop->call.progress;
    /* Colour space, quantization tables and sampling; no metadata. */
    jpeg_copy_critical_parameters(&crop->from, to);
    to->image_width = crop->job->width;
    to->image_height = crop->job->height;
    if (to->num_components == 1)
        to->comp_info[0].h_samp_factor = to->comp_info[0].v_samp_factor = 1;
    jpeg_write_coefficients(to, arrays);
    jpeg_finish_compress(to);
}

static void run(struct crop *crop) {
    if (setjmp(crop->call.end))
        return;
    jvirt_barray_ptr *arrays = read_blocks(crop);
    check_precision(crop);
    move_blocks(crop, arrays);
    write_blocks(crop, arrays);
}

/* Writes a file of only the pixels of the job into job->output, and its length into *length. Returns a status; with another one
 * than COMPLETE nothing was made. */
int pushdown_jpeg_crop(const struct pushdown_jpeg_crop_job *job, size_t *length, char *message) {
    struct crop crop = {.job = job};
    pushdown_jpeg_prepare(&crop.call, &job->bounds, message);
    run(&crop);
    *length = job->capacity - crop.destination.free_in_buffer;
    jpeg_destroy_compress(&crop.to);
    jpeg_destroy_decompress(&crop.from);
    return crop.call.status;
}
