//! Converts CMYK to RGB as Pillow does.

/// Red, green and blue of four inks, where 255 is full ink: `(255 - k) - (255 - k) * ink / 255`. The division is rounded as
/// `(x + 128) * 257 >> 16`.
pub(super) fn to_rgb(inks: [u8; 4]) -> [u8; 3] {
    let [cyan, magenta, yellow, black] = inks;
    let light = 255 - black;
    [cyan, magenta, yellow].map(|ink| {
        let product = u32::from(ink) * u32::from(light) + 128;
        let absorbed = ((product >> 8) + product) >> 8;
        light.saturating_sub(u8::try_from(absorbed).unwrap_or(u8::MAX))
    })
}
