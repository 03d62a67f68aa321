//! Specs and values of all kinds.

use arrow_buffer::Buffer;
use bytes::Bytes;
use pushdown_core::{
    BytesKind, DType, Image, ImageKind, Kind, Layout, MediaType, Sample, Tensor, TensorKind,
};
use pushdown_part::{Label, LabelType, PartFormat, PartRow, PartSpec, PartWriter};

/// A spec without labels and further columns.
pub(crate) fn spec(format: PartFormat, kind: Kind) -> PartSpec {
    PartSpec {
        format,
        kind,
        label: None,
        columns: Vec::new(),
    }
}

/// Tensors of a type and a shape, of which some extents may depend on the sample.
pub(crate) fn tensors(dtype: DType, shape: &[Option<usize>], quantized: bool) -> Kind {
    Kind::Tensor(TensorKind {
        dtype,
        layout: Layout::Flat,
        shape: shape.to_vec(),
        quantized,
    })
}

pub(crate) fn fixed(shape: &[usize]) -> Vec<Option<usize>> {
    shape.iter().copied().map(Some).collect()
}

pub(crate) fn images(height: Option<u32>, width: Option<u32>) -> Kind {
    Kind::Image(ImageKind { width, height })
}

pub(crate) fn encoded(media: MediaType) -> Kind {
    Kind::Bytes(BytesKind {
        media: Some(media),
        ..BytesKind::default()
    })
}

/// A tensor whose bytes differ.
pub(crate) fn tensor(dtype: DType, shape: &[usize], seed: usize, scale: Option<f32>) -> Sample {
    let bytes = shape.iter().product::<usize>() * dtype.size();
    let data: Vec<u8> = (0..bytes)
        .map(|byte| u8::try_from((byte * 7 + seed * 31) % 120).unwrap())
        .collect();
    let tensor = Tensor::new(dtype, Layout::Flat, shape.to_vec(), Buffer::from_vec(data)).unwrap();
    Sample::Tensor(tensor.with_scale(scale))
}

pub(crate) fn image(height: u32, width: u32, seed: usize) -> Sample {
    let pixels = (0..width * height * 3).map(|pixel| u8::try_from((pixel as usize + seed) % 251).unwrap());
    Sample::Image(Image::new(width, height, pixels.collect()).unwrap())
}

pub(crate) fn bytes(content: &[u8]) -> Sample {
    Sample::Bytes(Bytes::copy_from_slice(content))
}

/// A smallest GIF, as far as its header goes.
pub(crate) const GIF: &[u8] = b"GIF89a\x02\0\x01\0\0\0\0";

/// The classes of the tests.
pub(crate) fn classes() -> LabelType {
    LabelType::Class {
        names: vec!["cat".to_owned(), "dog".to_owned()],
    }
}

/// A row without label and further columns.
pub(crate) fn row(index: usize, value: &Sample) -> PartRow<'_> {
    PartRow {
        index,
        label: None,
        columns: Vec::new(),
        value,
    }
}

/// A part of these samples: name, label, contents of further columns, value.
pub(crate) type Samples<'a> = [(&'a str, Option<Label>, Vec<Option<Bytes>>, Sample)];

pub(crate) fn part(spec: &PartSpec, samples: &Samples<'_>) -> Vec<u8> {
    let mut writer = PartWriter::new(spec.clone(), samples.iter().map(|(name, ..)| *name)).unwrap();
    for (index, (_, label, columns, value)) in samples.iter().enumerate() {
        let row = PartRow {
            index,
            label: label.as_ref(),
            columns: columns.clone(),
            value,
        };
        writer.push(&row).unwrap();
    }
    writer.finish(&[]).unwrap()
}
