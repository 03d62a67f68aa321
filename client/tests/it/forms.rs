//! Values behind layers as rounded numbers and as codes: what this host makes of its own floats, wherever they are rounded.

use half::bf16;
use pushdown::{DType, Sample, Tensor};
use pushdown_client::{Mode, PushdownReaderBuilder, Row, Split};

use super::{
    models::{PREPARED, floats, world},
    world::rows,
};

/// Steps of the pipeline up to the features.
const FEATURES: u8 = 5;

/// All rows: with every step run here, with the last one run here on the gateway's floats, and with none.
fn everywhere(reader: impl Fn() -> PushdownReaderBuilder) -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("plain", rows(reader().mode(Mode::Plain))),
        ("rounded here", rows(reader().split(Split::At(FEATURES)))),
        ("rounded there", rows(reader().split(Split::Full))),
    ]
}

fn tensor(row: &Row) -> &Tensor {
    match &row.value {
        Ok(Sample::Tensor(tensor)) => tensor,
        other => panic!("{}: {other:?}", row.key),
    }
}

fn largest(values: &[f32]) -> f32 {
    let values = values.iter().map(|value| value.abs());
    values.max_by(f32::total_cmp).unwrap()
}

/// Law 1 leaves a neighbour to the few numbers that lie about half way; whoever cut digits off would miss half of them.
fn assert_mostly(same: usize, all: usize, how: &str) {
    assert!(same * 10 >= all * 9, "{how}: {same} of {all} are the same");
}

#[test]
fn features_as_bf16_are_those_of_the_host_rounded() {
    let (world, models) = world();
    let text = format!("{PREPARED} | model(squeezenet, until=cut:6)");
    let reader = |text: &str| world.reader(text).models(models.path());
    let exact = rows(reader(&text).mode(Mode::Plain));
    let rounded = format!("{text} | cast(bf16)");
    for (how, found) in everywhere(|| reader(&rounded)) {
        assert_eq!(found.len(), exact.len());
        for (found, exact) in found.iter().zip(&exact) {
            assert_eq!(found.key, exact.key);
            let (value, exact) = (tensor(found), floats(exact));
            assert_eq!(value.dtype(), DType::Bf16);
            let (words, _) = value.data().as_chunks::<2>();
            assert_eq!(words.len(), exact.len());
            let largest = largest(&exact);
            let mut same = 0;
            for (word, exact) in words.iter().zip(&exact) {
                let (found, expected) = (bf16::from_le_bytes(*word), bf16::from_f32(*exact));
                same += usize::from(found == expected);
                // Of 8 bits the last is a 128th at most.
                let far = (found.to_f32() - expected.to_f32()).abs();
                assert!(
                    far <= 1e-5 * largest + expected.to_f32().abs() / 128.0,
                    "{how}: {found} for {exact}"
                );
            }
            assert_mostly(same, exact.len(), how);
        }
    }
}

#[test]
fn features_as_int8_are_the_codes_that_the_host_gives_them() {
    let (world, models) = world();
    let text = format!("{PREPARED} | model(squeezenet, until=cut:6)");
    let reader = |text: &str| world.reader(text).models(models.path());
    let exact = rows(reader(&text).mode(Mode::Plain));
    let codes = format!("{text} | quantize(int8)");
    for (how, found) in everywhere(|| reader(&codes)) {
        assert_eq!(found.len(), exact.len());
        for (found, exact) in found.iter().zip(&exact) {
            assert_eq!(found.key, exact.key);
            let (value, exact) = (tensor(found), floats(exact));
            assert_eq!((value.dtype(), value.data().len()), (DType::I8, exact.len()));
            let expected = largest(&exact) / 127.0;
            let scale = value.scale().expect("it travels with the codes");
            assert!(
                (scale / expected - 1.0).abs() <= 1e-5,
                "{how}: {scale} for {expected}"
            );
            let mut same = 0;
            for (code, exact) in value.data().iter().zip(&exact) {
                let (code, expected) = (i8::from_le_bytes([*code]), (exact / expected).round_ties_even());
                let far = (f32::from(code) - expected).abs();
                assert!(far <= 1.0, "{how}: {code} for {exact} by {scale}");
                same += usize::from(far < 0.5);
            }
            assert_mostly(same, exact.len(), how);
        }
    }
}
