//! Inks to light, as Pillow has it.

/// Red, green and blue of four inks, 255 being all of one: `(255 - k) - (255 - k) * ink / 255`, the division rounded by
/// `(x + 128) * 257 >> 16`.
pub(super) fn to_rgb(inks: [u8; 4]) -> [u8; 3] {
    let [cyan, magenta, yellow, black] = inks;
    let light = 255 - black;
    [cyan, magenta, yellow].map(|ink| {
        let product = u32::from(ink) * u32::from(light) + 128;
        let taken = ((product >> 8) + product) >> 8;
        light.saturating_sub(u8::try_from(taken).unwrap_or(u8::MAX))
    })
}
