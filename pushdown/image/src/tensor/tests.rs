mod grey;

use half::{bf16, f16};

use super::{convert::Element, to_float::unit_float};
use pushdown::Pipeline;
use pushdown_core::{Context, Image, Layout, Sample, Tensor};

/// Runs tensor steps on a tensor. The steps in `before` only give the input its type.
fn run(steps: &str, tensor: Tensor, before: &str) -> Result<Tensor, String> {
    let pipeline =
        Pipeline::parse(&format!("decode | {before} | {steps}")).map_err(|error| error.to_string())?;
    let start = 1 + before.matches('|').count() + 1;
    match pipeline.run(start..pipeline.len(), Sample::Tensor(tensor), &Context::new(b"")) {
        Ok(Sample::Tensor(tensor)) => Ok(tensor),
        Ok(other) => Err(format!("expected a tensor, found {other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn flat<T: Element>(values: &[T]) -> Tensor {
    Tensor::from_values(Layout::Flat, vec![values.len()], values.to_vec())
}

fn cast<A: Element, B: Element + Clone>(to: &str, values: &[A]) -> Vec<B> {
    run(&format!("cast({to})"), flat(values), "to_float")
        .expect(to)
        .values::<B>()
        .into_owned()
}

#[test]
fn floats_are_cast_to_integers() {
    let floats = [
        0.5_f32,
        1.5,
        2.5,
        -0.5,
        -1.5,
        254.5,
        255.5,
        300.0,
        -7.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -0.0,
    ];
    assert_eq!(
        cast::<f32, u8>("u8", &floats),
        [0, 2, 2, 0, 0, 254, 255, 255, 0, 0, 255, 0, 0],
        "ties to even, saturating"
    );
    assert_eq!(
        cast::<f32, i8>("i8", &floats),
        [0, 2, 2, 0, -2, 127, 127, 127, -7, 0, 127, -128, 0]
    );
    assert_eq!(
        cast::<f32, i32>("i32", &[2e9, 3e9, -3e9, f32::NAN]),
        [2_000_000_000, i32::MAX, i32::MIN, 0]
    );
    assert_eq!(
        cast::<f32, i64>("i64", &[1e19, -1e19, 16_777_217.0, f32::NAN]),
        [i64::MAX, i64::MIN, 16_777_216, 0]
    );
    assert_eq!(
        cast::<f16, u8>("u8", &[f16::from_f32(2.5), f16::INFINITY]),
        [2, 255]
    );
    assert_eq!(
        cast::<bf16, i8>("i8", &[bf16::from_f32(-300.0), bf16::NAN]),
        [-128, 0]
    );
}

#[test]
fn casts_between_integers_saturate() {
    assert_eq!(
        cast::<i64, u8>("u8", &[-1, 0, 255, 256, i64::MAX]),
        [0, 0, 255, 255, 255]
    );
    assert_eq!(cast::<u8, i8>("i8", &[0, 127, 128, 255]), [0, 127, 127, 127]);
    assert_eq!(
        cast::<i64, i32>("i32", &[i64::MIN, -1, i64::MAX]),
        [i32::MIN, -1, i32::MAX]
    );
    assert_eq!(cast::<i8, i64>("i64", &[-128, 127]), [-128, 127]);
}

#[test]
fn numbers_are_cast_to_floats() {
    assert_eq!(
        cast::<i32, f32>("f32", &[16_777_217, -3]),
        [16_777_216.0, -3.0],
        "to nearest, ties to even"
    );
    assert_eq!(cast::<i64, f32>("f32", &[i64::MAX]), [9.223_372e18]);
    let halves = cast::<f32, f16>(
        "f16",
        &[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 65_520.0, 1e-8, -0.0],
    );
    assert_eq!(
        halves.iter().map(|half| half.to_bits()).collect::<Vec<_>>(),
        [0x3c00, 0x3c02, 0x7c00, 0, 0x8000]
    );
    let brains = cast::<f32, bf16>("bf16", &[1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, f32::MAX]);
    assert_eq!(
        brains.iter().map(|brain| brain.to_bits()).collect::<Vec<_>>(),
        [0x3f80, 0x3f82, 0x7f80]
    );
    assert!(cast::<f32, f16>("f16", &[f32::NAN])[0].is_nan());
    assert!(cast::<f32, bf16>("bf16", &[f32::NAN])[0].is_nan());
    assert_eq!(
        cast::<f16, f32>("f32", &[f16::MIN_POSITIVE_SUBNORMAL]),
        [5.960_464_5e-8]
    );
}

#[test]
fn quantized_tensors_are_dequantized() {
    let codes = |steps: &str, values: &[f32]| {
        let tensor = run(steps, flat(values), "to_float").expect(steps);
        (tensor.values::<i8>().into_owned(), tensor.scale())
    };
    assert_eq!(
        codes("quantize(int8)", &[127.0, -63.5, 0.5, 1.5, -2.5]),
        (vec![127, -64, 0, 2, -2], Some(1.0))
    );
    assert_eq!(
        codes("quantize(int8)", &[0.0, -0.0]),
        (vec![0, 0], Some(1.0)),
        "the default scale is not 0"
    );
    let wild = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 12.7];
    assert_eq!(
        codes("quantize(int8)", &wild),
        (vec![0, 127, -127, 127], Some(12.7 / 127.0))
    );
    assert_eq!(
        codes("quantize(int8, scale=0.5)", &[10.0, 100.0, -100.0, 0.25]),
        (vec![20, 127, -127, 0], Some(0.5))
    );
    assert_eq!(
        codes("quantize(int8)", &[f32::MIN_POSITIVE / 1e6]).0.len(),
        1,
        "subnormal scales do not trap"
    );

    let back = run(
        "quantize(int8) | dequantize",
        flat(&[1.0_f32, -0.3, 0.25]),
        "to_float",
    )
    .expect("a round trip");
    assert_eq!(back.scale(), None);
    for (value, back) in [1.0, -0.3, 0.25].iter().zip(back.values::<f32>().iter()) {
        assert!((value - back).abs() <= 0.5 / 127.0, "{value} {back}");
    }
}

#[test]
fn layout_keeps_the_scale() {
    let values: Vec<f32> = (0..24_u8).map(f32::from).collect();
    let tensor = Tensor::from_values(Layout::Chw, vec![2, 3, 4], values);
    let permuted = run("quantize(int8) | layout(hwc)", tensor, "to_float").expect("codes");
    assert_eq!(
        (permuted.scale(), permuted.shape(), permuted.layout()),
        (Some(23.0 / 127.0), &[3, 4, 2][..], Layout::Hwc)
    );
}

#[test]
fn layout_permutes_the_axes() {
    let chw = Tensor::from_values(Layout::Chw, vec![3, 2, 2], (0..12).collect::<Vec<i32>>());
    let hwc = run("layout(hwc)", chw.clone(), "to_float | cast(i32)").expect("hwc");
    assert_eq!(hwc.shape(), [2, 2, 3]);
    assert_eq!(&*hwc.values::<i32>(), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    assert_eq!(
        run("layout(chw)", hwc.clone(), "to_float | cast(i32) | layout(hwc)").expect("chw"),
        chw
    );
    assert_eq!(
        run("layout(hwc)", hwc.clone(), "to_float | cast(i32) | layout(hwc)").expect("same"),
        hwc
    );
    assert!(
        run("layout(hwc)", flat(&[1_i32]), "to_float | cast(i32)")
            .expect_err("no axes")
            .contains("three axes")
    );
}

#[test]
fn pixels_become_tensors() {
    let image = Image::new(2, 1, vec![0, 51, 255, 1, 2, 3]).expect("sizes agree");
    let run = |text: &str| {
        let pipeline = Pipeline::parse(&format!("decode | {text}")).expect(text);
        match pipeline.run(
            1..pipeline.len(),
            Sample::Image(image.clone()),
            &Context::new(b""),
        ) {
            Ok(Sample::Tensor(tensor)) => tensor,
            other => panic!("expected a tensor, found {other:?}"),
        }
    };
    assert_eq!(&*run("to_tensor").values::<u8>(), [0, 1, 51, 2, 255, 3]);
    assert_eq!(
        &*run("to_float").values::<f32>(),
        [0, 1, 51, 2, 255, 3].map(unit_float)
    );
    assert_eq!(
        &*run("to_float").values::<f32>(),
        [0.0, 1.0 / 255.0, 0.2, 2.0 / 255.0, 1.0, 3.0 / 255.0]
    );
    let normalized = run("to_float | normalize(imagenet)");
    let expected = [
        (0, 0.485, 0.229),
        (1, 0.485, 0.229),
        (51, 0.456, 0.224),
        (2, 0.456, 0.224),
        (255, 0.406, 0.225),
        (3, 0.406, 0.225),
    ]
    .map(|(value, mean, std)| (unit_float(value) - mean) / std);
    assert_eq!(
        &*normalized.values::<f32>(),
        expected,
        "fused, subtracted and divided in that order"
    );
    assert_eq!(
        run("to_float | layout(hwc) | normalize(imagenet) | layout(chw)"),
        normalized
    );
    assert_eq!(
        &*run("to_float | normalize(mean=0.5, std=0.25)").values::<f32>(),
        [0, 1, 51, 2, 255, 3].map(|value| (unit_float(value) - 0.5) / 0.25)
    );
}

#[test]
fn normalize_requires_a_mean_per_channel() {
    let two = Tensor::from_values(Layout::Chw, vec![2, 1, 1], vec![0.0_f32, 1.0]);
    assert_eq!(
        run("normalize(imagenet)", two, "to_float").expect_err("two channels"),
        "`normalize` has 3 means, found a tensor of 2 channels, expected 1 or 2"
    );
    assert!(
        run("normalize(imagenet)", flat(&[1.0_f32]), "to_float")
            .expect_err("no channels")
            .contains("without channels")
    );
    assert_eq!(
        &*run("normalize(mean=1, std=2)", flat(&[5.0_f32]), "to_float")
            .expect("scalar")
            .values::<f32>(),
        [2.0]
    );
}

/// Received values can have any alignment.
#[test]
fn unaligned_buffers_are_read() {
    let bytes: Vec<u8> = std::iter::once(0)
        .chain([1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()))
        .collect();
    let buffer = arrow_buffer::Buffer::from_vec(bytes).slice(1);
    let tensor = Tensor::new(pushdown_core::DType::F32, Layout::Flat, vec![2], buffer).expect("eight bytes");
    let cast = run("cast(f16)", tensor.clone(), "to_float").expect("f16");
    assert_eq!(&*cast.values::<f16>(), [f16::from_f32(1.5), f16::from_f32(-2.0)]);
    let normalized = run("normalize(mean=0, std=2)", tensor, "to_float").expect("f32");
    assert_eq!(&*normalized.values::<f32>(), [0.75, -1.0]);
}

#[test]
fn the_bytes_of_a_tensor_match_its_shape() {
    let bytes = |count: usize| arrow_buffer::Buffer::from_vec(vec![0_u8; count]);
    assert!(Tensor::new(pushdown_core::DType::F32, Layout::Flat, vec![2, 3], bytes(24)).is_ok());
    assert!(Tensor::new(pushdown_core::DType::F32, Layout::Flat, vec![2, 3], bytes(23)).is_err());
    assert!(
        Tensor::new(
            pushdown_core::DType::I64,
            Layout::Flat,
            vec![usize::MAX, usize::MAX],
            bytes(8)
        )
        .is_err()
    );
    assert!(Image::new(u32::MAX, u32::MAX, vec![0; 3]).is_err());
    assert!(Image::new(0, 5, vec![]).is_err());
}
