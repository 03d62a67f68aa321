//! Corrupt and malicious objects.

use ::parquet::basic::Compression;

use super::*;

/// Reproducible pseudo-random numbers.
fn noise(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or_default()
    })
}

/// Checks that an object is a table or an error of the object.
fn assert_table_or_error(object: &Bytes) {
    for text in ["select", "select(columns=[n], where=\"n > 50 and text > 'row'\")"] {
        for outcome in [
            run(text, object),
            scan(text, object.clone()).map(|(table, _)| table),
        ] {
            if let Err(error) = outcome {
                let kinds = [ErrorKind::Undecodable, ErrorKind::TooLarge, ErrorKind::Unsuitable];
                assert!(kinds.contains(&error.kind()), "{error:?}");
            }
        }
    }
}

#[test]
fn corrupt_parquet_is_an_error_or_a_table() {
    check_corrupt_parquet(0..100);
}

#[test]
#[ignore = "hundreds of files: make test-full"]
fn much_corrupt_parquet_is_an_error_or_a_table() {
    check_corrupt_parquet(100..800);
}

fn check_corrupt_parquet(rounds: Range<u64>) {
    let object = parquet_file(&numbers(300), 100);
    let footer = object.len() - 1500..object.len() - 8;
    for round in rounds {
        let mut corrupt = object.to_vec();
        let mut noise = noise(round);
        for _ in 0..=(round % 4) {
            let range = if round % 3 == 0 {
                4..object.len() - 8
            } else {
                footer.clone()
            };
            let position = range.start + noise.next().unwrap() % range.len();
            corrupt[position] = [0, 0xff, 0x7f, 0x80, 0x19, 0xfc][noise.next().unwrap() % 6];
        }
        assert_table_or_error(&corrupt.into());
    }
}

#[test]
fn truncated_parquet_is_an_error() {
    let object = parquet_file(&numbers(300), 100);
    for length in (0..object.len()).step_by(37) {
        let error = run("select(format=parquet)", &object.slice(..length)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{length}: {error}");
    }
}

/// A footer of a few bytes claims a list of two billion elements.
#[test]
fn a_footer_with_a_huge_claimed_list_is_an_error() {
    for claim in [
        [0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
        [0xfc, 0xff, 0xff, 0xff, 0x7f, 0x00],
    ] {
        // Field 1 is the version; field 2 is the list of the schema's elements.
        let mut footer = vec![0x15, 0x02, 0x19];
        footer.extend(claim);
        footer.extend([0; 64]);
        let error = run("select", &with_footer(&footer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    }
}

/// A Parquet file that consists of its footer.
fn with_footer(footer: &[u8]) -> Bytes {
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [&b"PAR1"[..], footer, &length, b"PAR1"].concat().into()
}

/// A Parquet file whose schema has a root with the given encoded number of children, followed by `elements`.
fn with_schema(children: &[u8], elements: &[&[u8]]) -> Bytes {
    let count = elements.len() + 1;
    let seven_bits = |shift: u32| u8::try_from((count >> shift) & 0x7f).unwrap();
    // Field 1 is the version; field 2 is a list of structs whose length takes three bytes.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc];
    footer.extend([0x80 | seven_bits(0), 0x80 | seven_bits(7), seven_bits(14)]);
    footer.extend([0x48, 1, b'r', 0x15]);
    footer.extend(children);
    footer.push(0);
    footer.extend(elements.concat());
    // The fields after the schema: the number of rows and the row groups.
    footer.extend([0x16, 0, 0x19, 0x0c, 0]);
    with_footer(&footer)
}

const LEAF: &[u8] = &[0x15, 2, 0x25, 0, 0x18, 1, b'n', 0];

/// Readers recurse into a schema, and a stack overflow would end the process.
#[test]
fn a_deeply_nested_schema_is_an_error() {
    let group: &[u8] = &[0x35, 0, 0x18, 1, b'g', 0x15, 2, 0];
    for (depth, is_too_deep) in [(30, false), (64, true), (100_000, true)] {
        let mut elements = vec![group; depth];
        elements.push(LEAF);
        let object = with_schema(&[2], &elements);
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let read = thread.spawn(move || run("select", &object)).unwrap();
        let outcome = read.join().unwrap();
        match outcome {
            Ok(table) => assert!(!is_too_deep && table.rows() == 0, "{depth}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Undecodable, "{depth}: {error}");
                assert!(is_too_deep, "{depth}: {error}");
                assert!(error.to_string().contains("at most 64 deep"), "{depth}: {error}");
            }
        }
    }
}

#[test]
fn a_group_with_too_many_claimed_children_is_an_error() {
    assert_eq!(run("select", &with_schema(&[2], &[LEAF])).unwrap().rows(), 0);
    for (claim, message) in [
        (
            &[4][..],
            "expected at most 1 columns in a group, the number left in the schema, found 2",
        ),
        (&[1][..], "found -1"),
        (&[0xfe, 0xff, 0xff, 0xff, 0x0f][..], "found 2147483647"),
    ] {
        let error = run("select", &with_schema(claim, &[LEAF])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// The footer is complete, but its offsets are wrong.
#[test]
fn parquet_without_its_middle_is_an_error() {
    let object = parquet_file(&numbers(300), 100);
    let length = u32::from_le_bytes(object[object.len() - 8..object.len() - 4].try_into().unwrap());
    let footer = object.len() - 8 - length as usize;
    let footer_only = Bytes::from([&object[..4], &object[footer..]].concat());
    for text in ["select", "select(columns=[n], where=\"n > 50\")"] {
        for source in [
            footer_only.clone(),
            Bytes::from([&object[..footer / 2], &object[footer..]].concat()),
        ] {
            let error = scan(text, CountingSource::new(source)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{text}: {error}");
            let message = "expected the column chunk within the first";
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }
}

#[test]
fn a_footer_beyond_the_limit_is_not_read() {
    let object = parquet_file(&numbers(300), 100);
    let mut changed = object.to_vec();
    let length_field = changed.len() - 8..changed.len() - 4;
    changed[length_field].copy_from_slice(&(40_u32 << 20).to_le_bytes());
    changed.splice(4..4, vec![0; 41 << 20]);
    let source = CountingSource::new(changed.into());
    let error = scan("select", source.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(source.bytes_read(), 0);
}

/// Each page is within its own limit, and the footer claims almost no bytes.
#[test]
fn the_total_size_of_pages_is_limited() {
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
    for has_dictionaries in [false, true] {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(has_dictionaries)
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
        let message = "expected at most 8388608 bytes decompressed at a time";
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn columns_are_read_by_name_among_ten_thousand() {
    let columns = (0..10_000).map(|index| (format!("c{index}"), column(index..index + 3)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let object = parquet_file(&batch, 10);
    let table = run("select(columns=[c7, c9999], where=\"c5000 > 5000\")", &object).unwrap();
    assert_eq!(int64s(&table, 1), [10_000, 10_001]);
    let error = run("select(columns=[nothing])", &object).unwrap_err();
    assert!(error.to_string().contains("and 9980 more"), "{error}");
}

#[test]
fn corrupt_arrow_is_an_error_or_a_table() {
    check_corrupt_arrow(0..100);
}

#[test]
#[ignore = "hundreds of files: make test-full"]
fn much_corrupt_arrow_is_an_error_or_a_table() {
    check_corrupt_arrow(100..800);
}

fn check_corrupt_arrow(rounds: Range<u64>) {
    let batch = numbers(300);
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let object = writer.into_inner().unwrap();
    for round in rounds {
        let mut corrupt = object.clone();
        let mut noise = noise(round);
        let end = if round % 2 == 0 { 900 } else { corrupt.len() };
        let position = 64 + noise.next().unwrap() % (end - 64);
        corrupt[position] = [0, 0xff, 0x7f, 0x80, 1, 0x40][noise.next().unwrap() % 6];
        assert_table_or_error(&corrupt.into());
    }
}
