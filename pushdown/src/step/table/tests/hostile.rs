//! Objects that are made to do harm.

use super::*;

/// A few numbers that look random, the same ones each time.
fn noise(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or_default()
    })
}

fn try_all(object: &Bytes) {
    for text in ["select", "select(columns=[n], where=\"n > 50 and text > 'row'\")"] {
        for (_, outcome) in [
            (0, run(text, object)),
            (1, scan(text, object.clone()).map(|(table, _)| table)),
        ] {
            if let Err(error) = outcome {
                let kinds = [
                    ErrorKind::Undecodable,
                    ErrorKind::TooLarge,
                    ErrorKind::Unsuitable,
                    ErrorKind::Source,
                ];
                assert!(kinds.contains(&error.kind()), "{error:?}");
            }
        }
    }
}

#[test]
fn parquet_with_broken_bytes_is_an_error_or_a_table() {
    let object = parquet_of(&numbers(300), 100);
    let footer = object.len() - 1500..object.len() - 8;
    for round in 0..400 {
        let mut broken = object.to_vec();
        let mut noise = noise(round);
        for _ in 0..=(round % 4) {
            let range = if round % 3 == 0 {
                4..object.len() - 8
            } else {
                footer.clone()
            };
            let place = range.start + noise.next().unwrap() % range.len();
            broken[place] = [0, 0xff, 0x7f, 0x80, 0x19, 0xfc][noise.next().unwrap() % 6];
        }
        try_all(&broken.into());
    }
}

#[test]
fn parquet_that_is_cut_off_is_an_error() {
    let object = parquet_of(&numbers(300), 100);
    for length in (0..object.len()).step_by(37) {
        let error = run("select(format=parquet)", &object.slice(..length)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{length}: {error}");
    }
}

/// A list of two billion row groups, in a footer of a few bytes.
#[test]
fn a_footer_that_claims_a_long_list_is_an_error() {
    for claim in [
        [0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
        [0xfc, 0xff, 0xff, 0xff, 0x7f, 0x00],
    ] {
        // Field 1, the version; field 2, the list of the schema's elements, structs.
        let mut footer = vec![0x15, 0x02, 0x19];
        footer.extend(claim);
        footer.extend([0; 64]);
        let mut object = b"PAR1".to_vec();
        object.extend(&footer);
        object.extend(u32::try_from(footer.len()).unwrap().to_le_bytes());
        object.extend(b"PAR1");
        let error = run("select", &object.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    }
}

#[test]
fn a_footer_larger_than_its_limit_is_not_read() {
    let object = parquet_of(&numbers(300), 100);
    let mut lying = object.to_vec();
    let place = lying.len() - 8..lying.len() - 4;
    lying[place].copy_from_slice(&(40_u32 << 20).to_le_bytes());
    lying.splice(4..4, vec![0; 41 << 20]);
    let source = Counted::new(lying.into());
    let error = scan("select", source.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(source.read(), 0);
}

#[test]
fn ten_thousand_columns_are_read_by_name() {
    let columns = (0..10_000).map(|index| (format!("c{index}"), column(index..index + 3)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let object = parquet_of(&batch, 10);
    let table = run("select(columns=[c7, c9999], where=\"c5000 > 5000\")", &object).unwrap();
    assert_eq!(int64s(&table, 1), [10_000, 10_001]);
    let error = run("select(columns=[nothing])", &object).unwrap_err();
    assert!(error.to_string().contains("and 9980 more"), "{error}");
}

#[test]
fn broken_arrow_is_an_error_or_a_table() {
    let batch = numbers(300);
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let object = writer.into_inner().unwrap();
    for round in 0..400 {
        let mut broken = object.clone();
        let mut noise = noise(round);
        let most = if round % 2 == 0 { 900 } else { broken.len() };
        let place = 64 + noise.next().unwrap() % (most - 64);
        broken[place] = [0, 0xff, 0x7f, 0x80, 1, 0x40][noise.next().unwrap() % 6];
        try_all(&broken.into());
    }
}
