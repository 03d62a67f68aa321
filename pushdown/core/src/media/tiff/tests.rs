use super::*;

/// A TIFF whose directory, at byte 8, has one entry, followed by `rest`.
fn single_entry(order: ByteOrder, kind: u16, count: u32, field: [u8; 4], rest: &[u8]) -> Vec<u8> {
    let two = |value: u16| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let four = |value: u32| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let signature = match order {
        ByteOrder::Little => b"II",
        ByteOrder::Big => b"MM",
    };
    [
        &signature[..],
        &two(42),
        &four(8),
        &two(1),
        &two(900),
        &two(kind),
        &four(count),
        &field,
        &four(0),
        rest,
    ]
    .concat()
}

#[test]
fn values_of_every_type_are_read() {
    // `rest` starts at byte 26.
    let external = |kind, count, rest: &[u8]| single_entry(ByteOrder::Big, kind, count, [0, 0, 0, 26], rest);
    let numbers = |file: &[u8]| -> Vec<f64> {
        let values = TiffDirectory::read(file)
            .expect("a directory")
            .find(900)
            .expect("in the file");
        let values = values.expect("the tag");
        (0..values.len())
            .map(|index| values.number(index).expect("within"))
            .collect()
    };
    let inline = |kind, count, field| single_entry(ByteOrder::Big, kind, count, field, b"");
    assert_eq!(numbers(&inline(1, 3, [1, 2, 255, 9])), [1.0, 2.0, 255.0]);
    assert_eq!(numbers(&inline(6, 2, [1, 255, 0, 0])), [1.0, -1.0]);
    assert_eq!(numbers(&inline(3, 2, [1, 2, 0, 3])), [258.0, 3.0]);
    assert_eq!(numbers(&inline(8, 1, [255, 254, 0, 0])), [-2.0]);
    assert_eq!(numbers(&inline(4, 1, [0, 1, 0, 0])), [65536.0]);
    assert_eq!(numbers(&inline(9, 1, [255; 4])), [-1.0]);
    assert_eq!(numbers(&inline(11, 1, 1.5_f32.to_be_bytes())), [1.5]);
    assert_eq!(numbers(&inline(13, 1, [0, 0, 0, 8])), [8.0]);
    assert_eq!(numbers(&external(5, 1, &[0, 0, 0, 3, 0, 0, 0, 4])), [0.75]);
    assert_eq!(
        numbers(&external(10, 1, &[255, 255, 255, 253, 0, 0, 0, 4])),
        [-0.75]
    );
    assert_eq!(numbers(&external(12, 1, &2.5_f64.to_be_bytes())), [2.5]);
    assert_eq!(
        numbers(&external(16, 1, &[0, 0, 0, 1, 0, 0, 0, 0])),
        [4_294_967_296.0]
    );
    assert_eq!(numbers(&external(17, 1, &[255; 8])), [-1.0]);
    assert_eq!(numbers(&external(3, 3, &[0, 1, 0, 2, 0, 3])), [1.0, 2.0, 3.0]);
    let little = single_entry(ByteOrder::Little, 3, 2, [1, 2, 0, 3], b"");
    assert_eq!(numbers(&little), [513.0, 768.0]);
    for kind in [2, 5, 10, 11, 12] {
        let file = external(kind, 1, &[0; 8]);
        let values = TiffDirectory::read(&file)
            .expect("a directory")
            .find(900)
            .expect("in the file");
        assert!(
            values.expect("the tag").integer(0).is_err(),
            "type {kind} is no integer"
        );
    }
}

#[test]
fn truncated_headers_are_refused() {
    let file = single_entry(ByteOrder::Big, 3, 1, [0; 4], b"");
    assert_eq!(MediaType::sniff(&file), Some(MediaType::Tiff));
    assert_eq!(
        TiffDirectory::read(&file)
            .expect("a directory")
            .summary()
            .map_err(|error| error.to_string()),
        Err("the TIFF lacks tag 256 (ImageWidth)".to_owned())
    );
    for length in 0..file.len() - 4 {
        assert!(TiffDirectory::read(&file[..length]).is_err(), "{length} bytes");
    }
    // The offset of the next page is not read.
    assert!(TiffDirectory::read(&file[..file.len() - 4]).is_ok());
}
