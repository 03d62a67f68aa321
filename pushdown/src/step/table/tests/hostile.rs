//! Objects that are made to do harm.

use ::parquet::basic::Compression;

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
                let kinds = [ErrorKind::Undecodable, ErrorKind::TooLarge, ErrorKind::Unsuitable];
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
        let error = run("select", &with_footer(&footer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    }
}

/// A Parquet file that is its footer.
fn with_footer(footer: &[u8]) -> Bytes {
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [&b"PAR1"[..], footer, &length, b"PAR1"].concat().into()
}

/// A Parquet file whose schema has a root that says that it has so many children, as the format writes it, and more elements.
fn with_schema(children: &[u8], elements: &[&[u8]]) -> Bytes {
    let count = elements.len() + 1;
    let digit = |shift: u32| u8::try_from((count >> shift) & 0x7f).unwrap();
    // Field 1, the version; field 2, a list of structs whose length is a number of three bytes.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    footer.extend([0x80 | digit(0), 0x80 | digit(7), digit(14)]);
    footer.extend([0x48, 1, b'r', 0x15]);
    footer.extend(children);
    footer.push(0);
    footer.extend(elements.concat());
    // What the schema is followed by: the number of rows, row groups.
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    with_footer(&footer)
}

const LEAF: &[u8] = &[0x15, 2, 0x25, 0, 0x18, 1, b'n', 0];

/// What reads a schema recurses, and a stack that overflows ends the process.
#[test]
fn a_schema_nested_without_end_is_an_error() {
    let group: &[u8] = &[0x35, 0, 0x18, 1, b'g', 0x15, 2, 0];
    for (depth, nested) in [(30, false), (64, true), (100_000, true)] {
        let mut elements = vec![group; depth];
        elements.push(LEAF);
        let object = with_schema(&[2], &elements);
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let read = thread.spawn(move || run("select", &object)).unwrap();
        let outcome = read.join().unwrap();
        match outcome {
            Ok(table) => assert!(!nested && table.rows() == 0, "{depth}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Undecodable, "{depth}: {error}");
                let says = error
                    .to_string()
                    .contains("nested deeper than 64, expected no more");
                assert!(nested && says, "{depth}: {error}");
            }
        }
    }
}

#[test]
fn a_group_that_claims_more_children_than_there_are_is_an_error() {
    assert_eq!(run("select", &with_schema(&[2], &[LEAF])).unwrap().rows(), 0);
    for (claim, says) in [
        (&[4][..], "a group of 2 columns, expected at most 1"),
        (&[1][..], "a group of -1 columns"),
        (
            &[0xfe, 0xff, 0xff, 0xff, 0x0f][..],
            "a group of 2147483647 columns",
        ),
    ] {
        let error = run("select", &with_schema(claim, &[LEAF])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// The footer is whole, and what it names is no longer where it was.
#[test]
fn parquet_whose_middle_is_missing_is_an_error() {
    let object = parquet_of(&numbers(300), 100);
    let length = u32::from_le_bytes(object[object.len() - 8..object.len() - 4].try_into().unwrap());
    let footer = object.len() - 8 - length as usize;
    let cut = Bytes::from([&object[..4], &object[footer..]].concat());
    for text in ["select", "select(columns=[n], where=\"n > 50\")"] {
        for source in [
            cut.clone(),
            Bytes::from([&object[..footer / 2], &object[footer..]].concat()),
        ] {
            let error = scan(text, Counted::new(source)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{text}: {error}");
            let says = "expected it within the first";
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
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

/// Each of its pages is within the limit on one, and the footer says that there is next to nothing in them.
#[test]
fn pages_are_bounded_together() {
    let zeros: ArrayRef = Arc::new(StringArray::from_iter_values(["0".repeat(1 << 20)]));
    let columns = (0..20).map(|index| (format!("c{index}"), Arc::clone(&zeros)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let tables = TableLimits {
        max_row_group_bytes: 8 << 20,
        ..TableLimits::default()
    };
    let limits = Limits {
        tables,
        ..Limits::default()
    };
    for dictionaries in [false, true] {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(dictionaries)
            .set_dictionary_page_size_limit(2 << 20)
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let object = Bytes::from(writer.into_inner().unwrap());
        let object = with_chunks(&object, |chunk| chunk.set_total_uncompressed_size(100));
        assert!(object.len() < 2 << 20, "{} bytes", object.len());
        let few = scan_with("select(columns=[c3, c7])", object.clone(), limits).unwrap();
        assert_eq!(few.0.rows(), 1);
        let error = scan_with("select", object, limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        let says = error.to_string();
        assert!(says.contains("inflated together"), "{says}");
        assert!(says.contains("more than the limit of 8388608"), "{says}");
    }
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
