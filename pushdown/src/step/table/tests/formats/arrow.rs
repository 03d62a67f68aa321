//! Arrow IPC.

use super::*;

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn arrow_files_and_streams_are_found_by_their_magic_bytes() {
    let words: DictionaryArray<Int8Type> = (0..2000)
        .map(|row| if row % 3 == 0 { Some("a") } else { None })
        .collect();
    let mut columns = numbers(2000).columns().to_vec();
    columns.push(Arc::new(words));
    let names = ["n", "m", "text", "word"].into_iter().zip(columns);
    let batch = RecordBatch::try_from_iter(names).unwrap();
    let batches = [batch.slice(0, 700), batch.slice(700, 1300)];
    let expected = Table::new(batch.schema(), vec![batch]).unwrap();
    for object in [
        arrow_file(&batches, None),
        arrow_file(&batches, Some(arrow_ipc::CompressionType::ZSTD)),
        arrow_file(&batches, Some(arrow_ipc::CompressionType::LZ4_FRAME)),
        arrow_stream(&batches).into(),
    ] {
        assert_eq!(read("no name", "select", object.clone()).unwrap(), expected);
        let text = "select(columns=[word, n], where=\"n % 2 = 0\")";
        assert_eq!(read("x", text, object.clone()).unwrap().rows(), 1000);
        for length in [4, 9, 300, object.len() / 2] {
            assert!(
                read_with(
                    "x",
                    "select(format=arrow)",
                    object.slice(..length),
                    Limits::default()
                )
                .is_err()
            );
        }
    }
}

#[test]
fn large_arrow_batches_are_cut() {
    let object = arrow_file(&[numbers(20_000)], None);
    let table = read_with("x", "select", object, Limits::default()).unwrap();
    let rows: Vec<_> = table.batches().iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [8192, 8192, 3616]);
}

/// A buffer of an Arrow file may claim any length that it inflates to.
#[test]
fn arrow_that_lies_about_its_lengths_is_an_error() {
    let object = arrow_file(&[numbers(5000)], Some(arrow_ipc::CompressionType::ZSTD));
    let magic = memchr::memmem::find(&object, &40_000_i64.to_le_bytes()).unwrap();
    let mut lying = object.to_vec();
    lying[magic..magic + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
    let error = read_with("x", "select", Bytes::from(lying), Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}
