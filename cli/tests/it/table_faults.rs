//! Local scans of tables whose stores replace the object or answer wrongly while it is read.

use pushdown_testkit::{Exchange, Parquet, ScriptedOrigin, ranged};

use super::cli::pushdown;

/// What a store does from its second answer on.
type Script = fn(&mut Exchange, &[u8]) -> std::io::Result<()>;

/// Reads a column of a table from a scripted store, and returns the exit code, the rows and stderr.
fn read(script: Script) -> (Option<i32>, Vec<u8>, String) {
    let object = Parquet {
        rows: 20_000,
        noise: 20,
        row_group: 2000,
    };
    let object = object.write().unwrap();
    let origin = ScriptedOrigin::start(move |exchange| match exchange.earlier_requests {
        0 => ranged(exchange, &object, "one"),
        _ => script(exchange, &object),
    });
    let origin = origin.unwrap();
    let endpoint = format!("http://{}", origin.address());
    let output = pushdown(&["get", "s3://bucket/t.parquet", "--plain", "--format", "csv"])
        .args(["--pipeline", "select(columns=[n])", "--endpoint-url", &endpoint])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, stderr)
}

#[test]
fn a_replaced_object_is_an_error() {
    let scripts: [Script; 4] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        |exchange, _| exchange.answer("416 Range Not Satisfiable", ""),
        // Stores that ignore If-Match.
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, &[0]].concat(), "one"),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let (code, rows, stderr) = read(script);
        assert_ne!(code, Some(0), "{number}");
        assert!(rows.is_empty(), "{number}: {} bytes of rows", rows.len());
        assert!(stderr.contains("s3://bucket/t.parquet"), "{number}: {stderr}");
    }
    let (_, _, stderr) = read(scripts[2]);
    assert!(stderr.contains("was replaced while it was read"), "{stderr}");
}

#[test]
fn an_answer_with_another_range_is_an_error() {
    let (code, rows, stderr) = read(|exchange, object| {
        let (part, total) = (&object[10..30], object.len());
        exchange.send(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 20\r\nETag: \"one\"\r\n\
             Content-Range: bytes 10-29/{total}\r\n\r\n"
        ))?;
        exchange.send(part)
    });
    assert!(code != Some(0) && rows.is_empty(), "{stderr}");
    assert!(
        stderr.contains("Content-Range does not match the requested range"),
        "{stderr}"
    );
}

#[test]
fn a_store_that_stops_serving_ranges_is_an_error() {
    let (code, rows, stderr) = read(|exchange, object| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"one\"\r\n\r\n",
            object.len()
        ))?;
        exchange.send(object)
    });
    assert!(code != Some(0) && rows.is_empty(), "{stderr}");
    assert!(
        stderr.contains("answered a range request with 200 and the whole object"),
        "{stderr}"
    );
}

#[test]
fn a_replaced_text_object_is_an_error() {
    let scripts: [Script; 3] = [
        |exchange, _| exchange.answer("412 Precondition Failed", ""),
        |exchange, object| ranged(exchange, object, "another"),
        |exchange, object| ranged(exchange, &[object, b"1,2\n"].concat(), "one"),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let text = [b"n,m\n".as_slice(), &b"1,2\n".repeat(50_000)].concat();
        let origin = ScriptedOrigin::start(move |exchange| match exchange.earlier_requests {
            0 => ranged(exchange, &text, "one"),
            _ => script(exchange, &text),
        });
        let endpoint = format!("http://{}", origin.as_ref().unwrap().address());
        let output = pushdown(&["get", "s3://bucket/t.csv", "--plain", "--format", "csv"])
            .args(["--pipeline", "select", "--endpoint-url", &endpoint])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{number}: {stderr}"
        );
    }
}

/// Text is read from start to end: the request is retried as long as no byte is received.
#[test]
fn a_busy_store_is_asked_again() {
    let origin = ScriptedOrigin::start(|exchange| match exchange.earlier_requests {
        1 => exchange.answer("503 Slow Down", "<Error><Code>SlowDown</Code></Error>"),
        _ => ranged(
            exchange,
            &[b"n,m\n".as_slice(), &b"1,2\n".repeat(20_000)].concat(),
            "one",
        ),
    });
    let origin = origin.unwrap();
    let endpoint = format!("http://{}", origin.address());
    let output = pushdown(&["get", "s3://bucket/t.csv", "--plain", "--format", "csv"])
        .args([
            "--pipeline",
            "select(columns=[n], limit=3)",
            "--endpoint-url",
            &endpoint,
        ])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n1\n1\n1\n");
}
