use super::*;

const MODELS: &str = "decode=4 tensor=4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma";

fn engine(text: &str) -> Engine {
    text.parse().unwrap()
}

#[test]
fn engines_parse_their_own_text() {
    let only_models = "none; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma";
    for text in ["decode=4 resample=4", "table=5", "none", MODELS, only_models] {
        assert_eq!(engine(text).to_string(), text);
    }
    assert_eq!(engine(&Engine::all().to_string()), Engine::all());
    assert_eq!(
        Engine::new([Family::Resample, Family::Decode, Family::Resample], None).to_string(),
        "decode=4 resample=4"
    );
    for text in [
        "",
        "three",
        "4;",
        "4; avx2",
        "-1",
        "99999999999",
        "4; onnxruntime=1",
        "decode",
        "decode=",
        "decode=four",
        "decode=4  resample=4",
        "=4",
        "De=4",
        "decode=4;",
    ] {
        let error = text.parse::<Engine>().unwrap_err().to_string();
        assert!(error.contains(&format!("found `{text}`")), "{error}");
    }
}

#[test]
fn a_single_number_is_the_version_of_all_families() {
    assert_eq!(engine("4").to_string(), Engine::all().to_string());
    let models = engine("4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma");
    assert!(models.is_compatible_with(&engine(MODELS)));
    assert_eq!(models.runtime(), engine(MODELS).runtime());
    for family in Family::ALL {
        assert_eq!(engine("3").version(family), Some(3));
        assert!(!engine("3").is_compatible_with(&Engine::new([family], None)));
    }
}

#[test]
fn versions_are_replaced_for_families_that_both_engines_have() {
    let other = engine(MODELS).with_versions_of(&engine("resample=99 tensor=98"));
    assert_eq!(other.to_string(), MODELS.replace("tensor=4", "tensor=98"));
    assert_eq!(engine("none").with_versions_of(&engine("5")), engine("none"));
}

#[test]
fn families_of_later_versions_are_ignored() {
    assert_eq!(engine("decode=4 video=1"), engine("decode=4"));
}

#[test]
fn errors_quote_invalid_engines_briefly() {
    let long = format!("{MODELS}{}", "+avx".repeat(1 << 18));
    for text in [long.as_str(), "4\u{1b}[2J"] {
        let error = text.parse::<Engine>().unwrap_err().to_string();
        assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
    }
}

#[test]
fn engines_of_equal_versions_are_compatible() {
    let own = engine(MODELS);
    // The expected compatibility, and whether the rounding differs.
    let cases = [
        (MODELS, true, false),
        (
            "decode=4 tensor=4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma+avx512f",
            true,
            true,
        ),
        (
            "decode=4 tensor=4; onnxruntime=1.31.1; provider=cuda; processor=avx2+fma",
            true,
            true,
        ),
        (
            "decode=4 tensor=4; onnxruntime=1.30.0; provider=cpu; processor=avx2+fma",
            false,
            true,
        ),
        (
            "decode=4 tensor=5; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma",
            false,
            false,
        ),
        // An engine without models has no values of models, and one without tables none of tables.
        ("4", true, false),
        ("5", false, false),
        ("decode=4", true, false),
        ("table=3", true, false),
        ("decode=3", false, false),
    ];
    for (text, is_compatible, has_other_rounding) in cases {
        let other = engine(text);
        assert_eq!(
            (own.is_compatible_with(&other), other.is_compatible_with(&own)),
            (is_compatible, is_compatible),
            "{text}"
        );
        assert_eq!(own.has_other_rounding(&other), has_other_rounding, "{text}");
        let same = own.compatibility_key() == other.compatibility_key();
        let has_models = text.contains("onnxruntime");
        assert_eq!(same, is_compatible && has_models, "{text}");
    }
}
