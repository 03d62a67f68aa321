use clap::Args;
use serde_json::Value;

use super::*;

fn upstream_only() -> Settings {
    Settings {
        upstream: Some("http://127.0.0.1:8333".into()),
        ..Settings::default()
    }
}

#[test]
fn an_upstream_is_the_only_required_setting() {
    let config = Config::validate(&upstream_only()).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:9900");
    assert_eq!(config.memory_budget, 1 << 30);
    assert_eq!(config.limits, Limits::default());
}

#[test]
fn all_faults_are_reported_at_once() {
    let typed = Settings {
        upstream: Some("s3://bucket/path".into()),
        access_key: Some("key".into()),
        listen: Some("localhost".into()),
        tls_cert: Some("cert.pem".into()),
        memory_budget: Some("1MiB".into()),
        threads: Some("0".into()),
        drain_timeout: Some("30".into()),
        log_level: Some("pushdown=shouting".into()),
        log_format: Some("xml".into()),
        limits: LimitSettings {
            max_object_bytes: Some("lots".into()),
            max_megapixels: Some("-3".into()),
            max_header_bytes: Some("1MiB".into()),
            queue_wait: Some("0s".into()),
            ..LimitSettings::default()
        },
        ..Settings::default()
    };
    insta::assert_snapshot!(Config::validate(&typed).unwrap_err());
}

#[test]
fn a_limit_ends_where_its_range_ends() {
    let limited = |text: &str| {
        Config::validate(&Settings {
            limits: LimitSettings {
                max_header_bytes: Some(text.into()),
                max_megapixels: Some("3".into()),
                ..LimitSettings::default()
            },
            ..upstream_only()
        })
        .map(|config| config.limits)
    };
    let limits = limited("256KiB").unwrap();
    assert_eq!(
        (limits.max_header_bytes, limits.max_pixels()),
        (256 << 10, 3_000_000)
    );
    for wrong in ["262145", "8191"] {
        let fault = limited(wrong).unwrap_err().to_string();
        assert!(
            fault.contains("max-header-bytes: expected 8KiB to 256KiB"),
            "{fault}"
        );
    }
}

#[test]
fn a_client_has_a_quarter_of_the_connections_unless_it_is_set() {
    let per_client = |all: &str, one: Option<&str>| {
        let settings = Settings {
            limits: LimitSettings {
                max_connections: Some(all.into()),
                max_connections_per_client: one.map(Text::from),
                ..LimitSettings::default()
            },
            ..upstream_only()
        };
        Config::validate(&settings)
            .unwrap()
            .limits
            .max_connections_per_client
    };
    assert_eq!(Limits::default().max_connections_per_client, 256);
    assert_eq!([per_client("400", None), per_client("1", None)], [100, 1]);
    assert_eq!(per_client("400", Some("399")), 399);
}

#[test]
fn proxies_are_a_list_of_networks() {
    let proxies = |text: &str| {
        let settings = Settings {
            proxies: Some(text.into()),
            ..upstream_only()
        };
        Config::validate(&settings).map(|config| serde_json::json!(config.proxies).to_string())
    };
    assert_eq!(
        proxies("10.0.0.1, 10.1.0.0/16,::1").unwrap(),
        r#"["10.0.0.1","10.1.0.0/16","::1"]"#
    );
    let fault = proxies("10.0.0.1,nginx").unwrap_err().to_string();
    assert!(
        fault.contains(
            "proxies: expected addresses or networks such as 10.0.0.1 or 10.1.0.0/16, found `nginx`"
        ),
        "{fault}"
    );
}

#[test]
fn exactly_one_store_is_required() {
    let none = Config::validate(&Settings::default()).unwrap_err();
    assert!(none.to_string().contains("no store"), "{none}");
    let both = Config::validate(&Settings {
        store: Some("data".into()),
        ..upstream_only()
    })
    .unwrap_err();
    assert!(both.to_string().contains("found both"), "{both}");
}

/// Those of limits come from their table; the others are written into the help.
#[test]
fn the_help_shows_the_actual_defaults() {
    let help = Settings::augment_args(clap::Command::new("help"));
    let Value::Object(mut defaults) =
        serde_json::to_value(Config::validate(&upstream_only()).unwrap()).unwrap()
    else {
        unreachable!()
    };
    let Some(Value::Object(limits)) = defaults.remove("limits") else {
        unreachable!()
    };
    let Some(Value::Object(cache)) = defaults.remove("cache") else {
        unreachable!()
    };
    let cache = cache.into_iter().filter(|(_, value)| !value.is_null());
    defaults.extend(cache.map(|(name, value)| match name.as_str() {
        "auth_ttl" => ("auth_cache_ttl".to_owned(), value),
        name => (format!("cache_{name}"), value),
    }));
    defaults.retain(|name, value| {
        !matches!(name.as_str(), "threads" | "io_threads" | "store") && !value.is_null()
    });
    assert_eq!((defaults.len(), limits.len()), (13, 27));
    for (name, value) in defaults.into_iter().chain(limits) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let argument = help
            .get_arguments()
            .find(|argument| argument.get_id() == name.as_str())
            .unwrap();
        let text = argument.get_help().unwrap().to_string();
        assert!(
            text.contains(&format!("[default: {value}]")),
            "expected {value} for {name}, found: {text}"
        );
    }
}

#[test]
fn an_upstream_must_not_have_a_path_or_a_user() {
    for wrong in [
        "http://store/prefix",
        "http://store/?x",
        "http://user:pass@store",
        "store:8333",
        "ftp://store",
    ] {
        let typed = Settings {
            upstream: Some(wrong.into()),
            ..Settings::default()
        };
        let faults = Config::validate(&typed).unwrap_err().to_string();
        assert!(faults.contains("upstream"), "{faults}");
        assert!(!faults.contains("pass"), "{faults}");
    }
}

#[cfg(feature = "models")]
#[test]
fn an_execution_provider_must_be_built_in() {
    use pushdown::step::model::Provider;

    let typed = |provider: Option<&str>| Settings {
        models: Some("models".into()),
        execution_provider: provider.map(Text::from),
        ..upstream_only()
    };
    let provider =
        |name| Config::validate(&typed(name)).map(|config| config.models.unwrap().execution_provider);
    assert_eq!(provider(None), Ok(Provider::Cpu));
    assert_eq!(provider(Some("cpu")), Ok(Provider::Cpu));
    let unknown = provider(Some("gpu")).unwrap_err().to_string();
    assert!(
        unknown.contains("execution-provider: unknown execution provider `gpu`: expected cpu or cuda"),
        "{unknown}"
    );
    if cfg!(feature = "cuda") {
        assert_eq!(provider(Some("cuda")), Ok(Provider::Cuda));
    } else {
        let fault = provider(Some("cuda")).unwrap_err().to_string();
        assert!(
            fault.contains("expected cpu, found `cuda`: this gateway was built without it"),
            "{fault}"
        );
        assert!(fault.contains("`--features cuda`"), "{fault}");
    }
    let orphan = Settings {
        execution_provider: Some("cpu".into()),
        ..upstream_only()
    };
    let orphan = Config::validate(&orphan).unwrap_err().to_string();
    assert!(orphan.contains("execution-provider requires models"), "{orphan}");
    let shown = serde_json::to_value(Config::validate(&typed(None)).unwrap()).unwrap();
    assert_eq!(shown["models"]["execution_provider"], "cpu");
}

#[cfg(feature = "embedded-store")]
#[test]
fn the_effective_configuration_masks_secrets() {
    let typed = Settings {
        store: Some("data".into()),
        access_key: Some("key".into()),
        secret_key: Some("hunter2".into()),
        threads: Some("2".into()),
        io_threads: Some("1".into()),
        ..Settings::default()
    };
    insta::assert_snapshot!(serde_json::to_string(&Config::validate(&typed).unwrap()).unwrap());
}

#[test]
fn an_admin_token_is_long_and_masked() {
    let settings = |token: &str| Settings {
        upstream: Some("http://store:9000".into()),
        admin_token: Some(token.into()),
        ..Settings::default()
    };
    let config = Config::validate(&settings("sixteen-letters!")).unwrap();
    let shown = format!("{config:?} {}", serde_json::to_string(&config).unwrap());
    assert!(shown.contains("***") && !shown.contains("sixteen"), "{shown}");
    for wrong in ["fifteen-letters", "sixteen letters!!", "sixteen-letters\u{e9}"] {
        let faults = Config::validate(&settings(wrong)).unwrap_err().to_string();
        assert!(faults.contains("admin-token: expected 16 or more"), "{faults}");
    }
}
