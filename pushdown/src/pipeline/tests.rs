use std::fmt::Write as _;

use super::*;
use crate::ErrorKind;

fn fault(text: &str) -> Error {
    Pipeline::parse(text).expect_err(text)
}

/// All errors of the language: the text, and the message with the position.
#[test]
fn error_texts() {
    let texts = [
        "",
        "   ",
        "|",
        "decode |",
        "decode | | resize",
        "decode resize",
        "decode) ",
        "decod",
        "decode | rezise(short=256)",
        "decode | modell(x)",
        "7",
        "decode(",
        "decode(orient",
        "decode(orient=",
        "decode(orient=exif",
        "decode(orient=exif,",
        "decode(orient=exif min_short=1)",
        "decode(orient=up)",
        "decode(orient=7)",
        "decode(exif)",
        "decode(min_short=0)",
        "decode(min_short=65536)",
        "decode(min_short=1.5)",
        "decode(min_short=99999999999999999999)",
        "decode(min_short=1e999)",
        "decode(min_short=-1)",
        "decode(min_short=0x10)",
        "decode(min_short=1, min_short=2)",
        "decode(min_short=1, min_long=2)",
        "decode(size=1)",
        "decode | decode",
        "to_float",
        "decode | normalize(imagenet)",
        "decode | resize",
        "decode | resize(224)",
        "decode | resize(224, short=224)",
        "decode | resize(224, 224, 224)",
        "decode | resize(short=256, 224)",
        "decode | resize(short=256, filter=cubic)",
        "decode | resize(short=256, filter=lanczos, antialias=false)",
        "decode | resize(short=256, filter=nearest, antialias=false)",
        "decode | resize(short=256, antialias=maybe)",
        "decode | crop(1, 2, 3)",
        "decode | crop(-1, 0, 3, 3)",
        "decode | crop(5000000000, 0, 3, 3)",
        "decode | center_crop",
        "decode | center_crop(\"224\")",
        "decode | center_crop([224])",
        "decode | encode",
        "decode | encode(gif)",
        "decode | encode(jpeg, quality=0)",
        "decode | encode(jpeg, quality=101)",
        "decode | encode(png, quality=90)",
        "decode | encode(jpeg) | resize(short=2)",
        "decode | to_float | to_float",
        "decode | to_float(1)",
        "decode | grayscale | cast(f32) | to_float",
        "decode | grayscale(3)",
        "decode | to_tensor | grayscale",
        "decode | grayscale | to_float | normalize(imagenet)",
        "decode | to_tensor | normalize(imagenet)",
        "decode | to_float | normalize",
        "decode | to_float | normalize(mean=0.5)",
        "decode | to_float | normalize(imagenet, mean=0.5)",
        "decode | to_float | normalize(imagine)",
        "decode | to_float | normalize(mean=[], std=[])",
        "decode | to_float | normalize(mean=[1, 2], std=[1, 2, 3])",
        "decode | to_float | normalize(mean=[1, 2], std=[1, 2])",
        "decode | to_float | normalize(mean=0, std=0)",
        "decode | to_float | normalize(mean=0, std=1e-60)",
        "decode | to_float | normalize(mean=1e60, std=1)",
        "decode | to_float | normalize(mean=nan, std=1)",
        "decode | to_float | normalize(mean=inf, std=1)",
        "decode | to_float | normalize(mean=-inf, std=1)",
        "decode | to_float | layout",
        "decode | to_float | layout(nhwc)",
        "decode | layout(chw)",
        "decode | to_float | cast(f64)",
        "decode | to_float | quantize(int4)",
        "decode | to_float | quantize(int8, scale=0)",
        "decode | to_float | quantize(int8) | cast(f32)",
        "decode | to_tensor | quantize(int8)",
        "decode | to_float | dequantize",
        "decode | flip_h(1.5)",
        "decode | flip_h(seed=-1)",
        "decode | flip_h(seed=1.5)",
        "decode | random_crop",
        "decode | random_crop(10, padding=70000)",
        "decode | random_resized_crop(224, scale=0.5)",
        "decode | random_resized_crop(224, scale=[0.5, 0.1])",
        "decode | random_resized_crop(224, scale=[0, 1])",
        "decode | random_resized_crop(224, ratio=[1, 2, 3])",
        "decode | color_jitter(-1)",
        "decode | color_jitter(hue=0.6)",
        "decode | color_jitter(brightness=[2, 1])",
        "decode | color_jitter(brightness=bright)",
        "decode | resize(short=[[[[[[1]]]]]])",
        "decode(orient='exif)",
        "decode(orient='a\\nb')",
        "decode(orient='\\u{110000}')",
        "decode(orient='\\u{d800}')",
        "decode(orient='\\u{zz}')",
        "decode(orient='\\u{41')",
        "decode(orient='\\",
        "decode(orient=\"\u{fc}\u{1f600}\")",
        "d\u{e9}code",
        "decode \u{2192} resize",
        "decode\0",
        "[",
        "[]",
        "[{}]",
        "[{\"step\": 7}]",
        "[{\"step\": \"decode\", \"step\": \"decode\"}]",
        "[{\"step\": \"decode | resize\"}]",
        "[{\"step\": \"decode\", \"a b\": 1}]",
        "[{\"step\": \"decode\"}, {\"step\": \"resize\", \"short\": 0}]",
        "[{\"step\": \"decode\"}, {\"step\": \"resize\", \"short\": 1, \"short\": 2}]",
        "[{\"step\": \"decode\"},\n {\"step\": \"resize\", \"short\": null}]",
        "[{\"step\": \"decode\", \"min_short\": 18446744073709551615}]",
        "[{\"step\": \"decode\", \"min_short\": 1e999}]",
        "[{\"step\": \"decode\"}] junk",
    ];
    let mut table = String::new();
    for text in texts {
        let error = fault(text);
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{text}");
        let position = error
            .position()
            .expect("every error of the language has a position");
        assert!(
            position as usize <= text.len().max(error.to_string().len()),
            "{text}: {position}"
        );
        writeln!(table, "{}\n  {error}", text.escape_debug()).expect("strings take any text");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn positions_are_byte_offsets() {
    let cases = [
        ("decode | rezise", 9),
        ("decode(orient=\"\u{fc}\") | x", 7),
        ("decode | resize(short=0)", 16),
        ("decode | resize(short=1, filter='\u{fc}', antialias=x)", 25),
        ("decode  \u{2192}", 8),
        ("decode | to_float | decode", 20),
    ];
    for (text, position) in cases {
        let error = fault(text);
        assert_eq!(error.position(), Some(position), "{text}: {error}");
        assert!(
            error.to_string().starts_with(&format!("at {}: ", position + 1)),
            "{error}"
        );
        assert_eq!(
            error.to_string().matches("at ").count(),
            1,
            "one position: {error}"
        );
    }
}

#[test]
fn limits_of_the_text() {
    let longest = format!("decode{}", " ".repeat(limits::MAX_PIPELINE_BYTES - 6));
    assert_eq!(longest.len(), limits::MAX_PIPELINE_BYTES);
    assert!(Pipeline::parse(&longest).is_ok());
    for longer in [format!("{longest} "), format!("[{longest}")] {
        let error = fault(&longer);
        assert_eq!(
            error.to_string(),
            "at 16385: the pipeline has 16385 bytes, expected at most 16384"
        );
    }
    let most = format!("decode{}", " | flip_h".repeat(limits::MAX_STEPS - 1));
    assert_eq!(Pipeline::parse(&most).expect("64 steps").len(), limits::MAX_STEPS);
    let error = fault(&format!("{most} | flip_h"));
    assert!(
        error.to_string().ends_with("found 65 steps, expected at most 64"),
        "{error}"
    );
    let json = format!("[{}]", vec!["{\"step\":\"flip_h\"}"; 300].join(","));
    assert!(fault(&json).to_string().contains("300 steps"), "{}", fault(&json));
}

/// For any text, the message is short enough for a header and a log line.
#[test]
fn messages_stay_short() {
    let long = "x".repeat(16_000);
    let hostile = [
        long.clone(),
        format!("decode(min_short={long})"),
        format!("decode(min_short=1{long})"),
        format!("decode({long}=1)"),
        format!("decode(orient='{long}')"),
        format!("decode(min_short=[{}1])", "1, ".repeat(4_000)),
        format!("decode{}", "(".repeat(16_000)),
        format!("decode({}", "[".repeat(16_000)),
        format!("[{{\"step\": \"{long}\"}}]"),
        format!("[{{\"step\": \"decode\", \"{long}\": 1}}]"),
        format!("[{{\"step\": \"decode\", \"orient\": \"{long}\"}}]"),
        format!("[{{\"step\": \"decode\", \"orient\": {}}}]", "[".repeat(16_000)),
        "[".repeat(16_000),
    ];
    for text in hostile {
        let error = fault(&text);
        assert!(
            error.to_string().len() < 600,
            "{} bytes: {error}",
            error.to_string().len()
        );
    }
}

#[test]
fn values_print_the_text_that_they_parse_from() {
    let values = [
        (Value::Int(i64::MIN), "-9223372036854775808"),
        (Value::Float(0.5), "0.5"),
        (Value::Float(1.0), "1.0"),
        (Value::Float(1e300), "1e300"),
        (Value::Float(5e-324), "5e-324"),
        (Value::from(0.485_f32), "0.485"),
        (Value::from(f32::MAX), "3.4028235e38"),
        (Value::Text("bilinear".to_owned()), "bilinear"),
        (Value::Text("_1".to_owned()), "_1"),
        (Value::Text("1a".to_owned()), "\"1a\""),
        (Value::Text(String::new()), "\"\""),
        (
            Value::Text("a\"b\\c\n\u{fc}'".to_owned()),
            "\"a\\\"b\\\\c\\u{a}\\u{fc}'\"",
        ),
        (Value::List(vec![]), "[]"),
        (
            Value::List(vec![Value::Int(1), Value::List(vec![Value::Float(2.0)])]),
            "[1, [2.0]]",
        ),
    ];
    for (value, text) in values {
        assert_eq!(value.to_string(), text);
        let calls = parse_calls(&format!("step({text})")).expect(text);
        assert_eq!(calls[0].arguments[0].value, value, "{text}");
        assert!(text.is_ascii(), "values fit into a header");
    }
}

#[test]
fn both_quotes_and_all_escapes() {
    for text in ["'exif'", "\"exif\"", "\"\\u{65}xif\"", "'e\\u{000078}if'"] {
        let pipeline = Pipeline::parse(&format!("decode(orient={text})")).expect(text);
        assert_eq!(pipeline.to_string(), "decode(orient=exif)");
    }
    let calls = parse_calls(r#"step('a"b\'', "a'b\"", "\\")"#).expect("quotes");
    let found: Vec<_> = calls[0]
        .arguments
        .iter()
        .map(|argument| argument.value.clone())
        .collect();
    assert_eq!(
        found,
        ["a\"b'", "a'b\"", "\\"].map(|text| Value::Text(text.to_owned()))
    );
}
