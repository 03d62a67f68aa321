//! Generators of values and of damage, for property tests.

use arrow_buffer::Buffer;
use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*, sample::select};

use pushdown_core::{DType, Image, Layout, Sample, Tensor};

/// Small values of all kinds except tables, including empty ones and scalars.
pub(super) fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![
        vec(any::<u8>(), 0..100).prop_map(|bytes| Sample::Bytes(bytes.into())),
        (1..6_u32, 1..6_u32).prop_flat_map(|(width, height)| {
            vec(any::<u8>(), (width * height * 3) as usize)
                .prop_map(move |pixels| Sample::Image(Image::new(width, height, pixels).unwrap()))
        }),
        tensor().prop_map(Sample::Tensor),
    ]
}

/// Tensors of all dtypes and layouts, with and without a scale.
pub(super) fn tensor() -> impl Strategy<Value = Tensor> {
    let layout = select(vec![Layout::Chw, Layout::Hwc, Layout::Flat]);
    let scale = option::of(prop_oneof![
        any::<f32>().prop_filter("NaN is not equal to itself", |scale| !scale.is_nan()),
        Just(0.1)
    ]);
    (select(DType::ALL.to_vec()), layout, vec(0..5_usize, 0..4), scale).prop_flat_map(
        |(dtype, layout, shape, scale)| {
            let bytes = shape.iter().product::<usize>() * dtype.size();
            vec(any::<u8>(), bytes).prop_map(move |data| {
                Tensor::new(dtype, layout, shape.clone(), Buffer::from_vec(data))
                    .unwrap()
                    .with_scale(scale)
            })
        },
    )
}

/// Damage to bytes.
#[derive(Debug, Clone)]
pub(super) enum Damage {
    Cut(prop::sample::Index),
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    /// Overwrites four or eight bytes, such as a length or an offset.
    Number(prop::sample::Index, u64, bool),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
}

pub(super) fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let index = any::<prop::sample::Index>;
    let number = prop_oneof![
        Just(u64::MAX),
        Just(i64::MAX as u64),
        Just(u64::from(u32::MAX)),
        Just(1 << 31),
        Just(0),
        Just(1),
        any::<u64>(),
        0..2000_u64,
    ];
    let one = prop_oneof![
        1 => index().prop_map(Damage::Cut),
        4 => (index(), any::<u8>()).prop_map(|(index, byte)| Damage::Set(index, byte)),
        4 => (index(), 0..8_u8).prop_map(|(index, bit)| Damage::Flip(index, 1 << bit)),
        4 => (index(), number, any::<bool>()).prop_map(|(index, number, wide)| Damage::Number(index, number, wide)),
        1 => (index(), vec(any::<u8>(), 1..9)).prop_map(|(index, bytes)| Damage::Insert(index, bytes)),
        1 => (index(), 1..9_usize).prop_map(|(index, count)| Damage::Remove(index, count)),
    ];
    vec(one, 1..4)
}

/// Applies damage to bytes.
pub(super) fn damaged(bytes: &[u8], damage: &[Damage]) -> Bytes {
    let mut bytes = bytes.to_vec();
    for one in damage {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match one {
            Damage::Cut(index) => bytes.truncate(index.index(length)),
            Damage::Set(index, byte) => bytes[index.index(length)] = *byte,
            Damage::Flip(index, bit) => bytes[index.index(length)] ^= bit,
            Damage::Number(index, number, wide) => {
                // Lengths are aligned to four bytes.
                let start = index.index(length) & !3;
                let number = &number.to_le_bytes()[..if *wide { 8 } else { 4 }];
                bytes
                    .iter_mut()
                    .skip(start)
                    .zip(number)
                    .for_each(|(byte, new)| *byte = *new);
            }
            Damage::Insert(index, new) => {
                let start = index.index(length);
                bytes.splice(start..start, new.iter().copied());
            }
            Damage::Remove(index, count) => {
                let start = index.index(length);
                bytes.drain(start..(start + count).min(length));
            }
        }
    }
    bytes.into()
}

/// Splits bytes into chunks of these lengths, repeated.
pub(super) fn chunks(mut bytes: Bytes, lengths: &[usize]) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    for length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        chunks.push(bytes.split_to(bytes.len().min(*length)));
    }
    chunks
}
