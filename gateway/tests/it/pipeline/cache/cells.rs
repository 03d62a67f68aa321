//! Cells of a column of images: what `each` computed for one scan, the next scan gets.

use std::thread;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{GOOD_SIGNATURE, Parquet, PolicyStore, Request, Response, signed_by};

use super::{super::Lab, MEMORY, launch, photo};

const KEY: &str = "t.parquet";
const PHOTOS: u8 = 12;
const PIPELINE: &str = "select | each(photo: decode | resize(64, 64) | to_float)";

fn table(width: u32) -> Result<Vec<u8>> {
    let photos: Vec<Vec<u8>> = (0..u32::from(PHOTOS))
        .map(|row| photo(width + row, 200, "jpeg"))
        .collect();
    let photos: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    Parquet::of_photos(&photos, 5)
}

fn values(lab: &Lab, origin: &str) -> Result<f64> {
    let name = format!("pushdown_cache_values_total{{origin=\"{origin}\"}}");
    lab.gateway.metric(&name)
}

/// An answer, and how many values were computed for it and were in memory.
fn counted(lab: &Lab, pipeline: &str, epoch: &str) -> Result<(Response, String)> {
    let read = || Ok::<_, anyhow::Error>([values(lab, "computed")?, values(lab, "memory")?]);
    let before = read()?;
    let randomness = [("x-pushdown-seed", "7"), ("x-pushdown-epoch", epoch)];
    let answer = lab.get(KEY, pipeline, &randomness)?;
    ensure!(answer.status == 200, "{}", answer.text());
    let after = read()?;
    let [computed, memory] = [after[0] - before[0], after[1] - before[1]];
    Ok((answer, format!("{computed} computed, {memory} in memory")))
}

/// Scans twice: the first scan brings the cells into the cache.
fn warm(lab: &Lab, pipeline: &str) -> Result<Response> {
    counted(lab, pipeline, "0")?;
    let (answer, counts) = counted(lab, pipeline, "0")?;
    ensure!(
        counts.starts_with("0 computed"),
        "the cells of {pipeline} are not cached: {counts}"
    );
    Ok(answer)
}

#[test]
fn a_scan_of_cached_cells_equals_the_first_one() -> Result<()> {
    for flags in [
        vec![MEMORY.to_owned()],
        vec![
            "--cache-disk=256MiB".to_owned(),
            "--cache-dir={folder}".to_owned(),
        ],
    ] {
        let folder = tempfile::tempdir()?;
        let flags: Vec<String> = flags
            .iter()
            .map(|flag| flag.replace("{folder}", &folder.path().display().to_string()))
            .collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let lab = Lab::new(&flags)?;
        lab.put(KEY, table(300)?)?;
        let (computed, counts) = counted(&lab, PIPELINE, "0")?;
        assert_eq!(counts, "12 computed, 0 in memory");
        assert_eq!(warm(&lab, PIPELINE)?.body, computed.body, "{flags:?}");
        let hits = values(&lab, "memory")? + values(&lab, "disk")?;
        assert!(hits >= f64::from(PHOTOS), "{flags:?}: {hits}");
    }
    Ok(())
}

/// A cell is found by its bytes: the rows of a query have no position in the object.
#[test]
fn other_queries_over_the_object_use_the_same_cells() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    lab.put(KEY, table(300)?)?;
    warm(&lab, PIPELINE)?;
    let query = "sql('select photo from object where n >= 4 order by n desc') | each(photo: decode | resize(64, 64) | to_float)";
    let (answer, counts) = counted(&lab, query, "0")?;
    assert_eq!(counts, "0 computed, 8 in memory");
    let plain = Lab::new(&[])?;
    plain.put(KEY, table(300)?)?;
    assert_eq!(answer.body, plain.get(KEY, query, &[])?.body);
    Ok(())
}

#[test]
fn steps_after_a_random_one_run_anew() -> Result<()> {
    let pipeline =
        "select(row_number=row) | each(photo: decode | resize(64, 64) | random_crop(48) | to_float)";
    let (lab, plain) = (Lab::new(&[MEMORY])?, Lab::new(&[])?);
    lab.put(KEY, table(300)?)?;
    plain.put(KEY, table(300)?)?;
    for epoch in ["0", "1", "2", "3", "4", "5"] {
        let (answer, counts) = counted(&lab, pipeline, epoch)?;
        let (computed, _) = counted(&plain, pipeline, epoch)?;
        assert_eq!(answer.body, computed.body, "epoch {epoch}");
        let expected = match epoch {
            "0" => "12 computed, 0 in memory",
            _ => "0 computed, 12 in memory",
        };
        assert_eq!(counts, expected, "epoch {epoch}");
    }
    Ok(())
}

#[test]
fn a_replaced_table_is_computed_anew() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    lab.put(KEY, table(300)?)?;
    warm(&lab, PIPELINE)?;
    lab.put(KEY, table(301)?)?;
    let (answer, counts) = counted(&lab, PIPELINE, "0")?;
    assert_eq!(counts, "12 computed, 0 in memory");
    let plain = Lab::new(&[])?;
    plain.put(KEY, table(301)?)?;
    assert_eq!(answer.body, plain.get(KEY, PIPELINE, &[])?.body);
    Ok(())
}

/// Each cell is computed once, whoever reads it.
#[test]
fn scans_at_the_same_time_share_cells() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    lab.put(KEY, table(2000)?)?;
    let answers: Vec<Response> = thread::scope(|scope| {
        let scans: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| lab.get(KEY, PIPELINE, &[])))
            .collect();
        let answers = scans
            .into_iter()
            .map(|scan| scan.join().ok().context("a scan panicked")?);
        answers.collect::<Result<_>>()
    })?;
    for answer in &answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.body, answers[0].body);
    }
    let used = values(&lab, "shared")? + values(&lab, "memory")?;
    let all = used + values(&lab, "computed")?;
    assert!((all - 4.0 * f64::from(PHOTOS)).abs() < 0.5, "{all} values");
    assert!(used > f64::from(PHOTOS), "{used} used again");
    Ok(())
}

/// Law 6: the store decides before a cell is read.
#[test]
fn a_caller_without_the_right_gets_no_cells() -> Result<()> {
    let store = PolicyStore::start()?;
    store.put("/photos/t.parquet", "\"1\"", table(300)?);
    let gateway = launch(&store, &[MEMORY])?;
    let get = |key: &str, signature: &str| {
        let request = Request::new("GET", "/photos/t.parquet").header("Host", "store");
        signed_by(request.header("x-pushdown-pipeline", PIPELINE), key, signature).send(gateway.listen())
    };
    let hits = || gateway.metric("pushdown_cache_values_total{origin=\"memory\"}");
    for _ in 0..5 {
        assert_eq!(get("first", GOOD_SIGNATURE)?.status, 200);
    }
    let before = hits()?;
    assert!(before >= f64::from(PHOTOS), "{before}");
    for (key, signature) in [("first", "wrong"), ("nobody", "wrong")] {
        let refused = get(key, signature)?;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    assert!((hits()? - before).abs() < 0.5);
    Ok(())
}
