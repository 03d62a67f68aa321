//! Model outputs as bf16 and int8: the values are those that the host computes from its own floats, independent of the split.

use half::bf16;
use pushdown::{DType, Sample, Tensor};
use pushdown_client::reader::{Mode, PushdownReaderBuilder, Row, Split};

use super::{
    models::{PREPARATION, floats, world},
    world::read_rows,
};

/// The number of steps up to the features.
const FEATURES_STAGE: u8 = 5;

/// Reads all rows three times: with all steps on the host, with only the last step on the host, and with all at the gateway.
fn read_with_all_splits(reader: impl Fn() -> PushdownReaderBuilder) -> Vec<(&'static str, Vec<Row>)> {
    vec![
        ("plain", read_rows(reader().mode(Mode::Plain))),
        (
            "rounded on the host",
            read_rows(reader().split(Split::At(FEATURES_STAGE))),
        ),
        ("rounded at the gateway", read_rows(reader().split(Split::Full))),
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

/// Law 1 permits the neighbouring value only for the few numbers close to the midpoint of two values. Truncation instead of
/// rounding would change half of them.
fn assert_mostly_equal(same: usize, all: usize, how: &str) {
    assert!(same * 10 >= all * 9, "{how}: {same} of {all} are equal");
}

#[test]
fn bf16_features_are_the_rounded_features_of_the_host() {
    let (world, models) = world();
    let text = format!("{PREPARATION} | model(squeezenet, until=cut:6)");
    let reader = |text: &str| world.reader(text).models(models.path());
    let exact = read_rows(reader(&text).mode(Mode::Plain));
    let rounded = format!("{text} | cast(bf16)");
    for (how, found) in read_with_all_splits(|| reader(&rounded)) {
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
                // bf16 has 8 significant bits: the last one is at most 1/128 of the value.
                let difference = (found.to_f32() - expected.to_f32()).abs();
                assert!(
                    difference <= 1e-5 * largest + expected.to_f32().abs() / 128.0,
                    "{how}: {found} for {exact}"
                );
            }
            assert_mostly_equal(same, exact.len(), how);
        }
    }
}

#[test]
fn int8_features_are_the_codes_of_the_host() {
    let (world, models) = world();
    let text = format!("{PREPARATION} | model(squeezenet, until=cut:6)");
    let reader = |text: &str| world.reader(text).models(models.path());
    let exact = read_rows(reader(&text).mode(Mode::Plain));
    let codes = format!("{text} | quantize(int8)");
    for (how, found) in read_with_all_splits(|| reader(&codes)) {
        assert_eq!(found.len(), exact.len());
        for (found, exact) in found.iter().zip(&exact) {
            assert_eq!(found.key, exact.key);
            let (value, exact) = (tensor(found), floats(exact));
            assert_eq!((value.dtype(), value.data().len()), (DType::I8, exact.len()));
            let expected = largest(&exact) / 127.0;
            let scale = value.scale().expect("the scale is sent with the codes");
            assert!(
                (scale / expected - 1.0).abs() <= 1e-5,
                "{how}: {scale} for {expected}"
            );
            let mut same = 0;
            for (code, exact) in value.data().iter().zip(&exact) {
                let (code, expected) = (i8::from_le_bytes([*code]), (exact / expected).round_ties_even());
                let difference = (f32::from(code) - expected).abs();
                assert!(difference <= 1.0, "{how}: {code} for {exact} by {scale}");
                same += usize::from(difference < 0.5);
            }
            assert_mostly_equal(same, exact.len(), how);
        }
    }
}
