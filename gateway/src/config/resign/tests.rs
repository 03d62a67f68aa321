use super::*;

fn validate(settings: &ResignSettings) -> (Option<Resign>, Option<String>) {
    let mut faults = Faults::default();
    let resign = Resign::validate(settings, &mut faults);
    let faults = faults.into_result(());
    (resign, faults.err().map(|faults| faults.to_string()))
}

#[test]
fn a_keys_file_turns_the_mode_on() {
    assert_eq!(validate(&ResignSettings::default()), (None, None));
    let (resign, faults) = validate(&ResignSettings {
        keys: Some("keys.toml".into()),
        domains: Some("s3.lab.example, s3.example".into()),
        ..ResignSettings::default()
    });
    let resign = resign.unwrap();
    assert_eq!(faults, None);
    assert_eq!(
        (resign.region.as_str(), resign.regions),
        ("us-east-1", vec!["us-east-1".to_owned()])
    );
    assert_eq!(resign.domains, ["s3.lab.example", "s3.example"]);
}

#[test]
fn the_other_settings_require_it() {
    let (_, faults) = validate(&ResignSettings {
        region: Some("eu-central-1".into()),
        audit: Some("audit.jsonl".into()),
        cache_max_age: Some("30s".into()),
        ..ResignSettings::default()
    });
    let faults = faults.unwrap();
    for setting in ["resign-region", "audit-log", "resign-cache-max-age"] {
        let fault = format!("{setting}: requires resign-keys");
        assert!(faults.contains(&fault), "{faults}");
    }
}

#[test]
fn style_and_credentials_are_words() {
    let (resign, _) = validate(&ResignSettings {
        keys: Some("keys.toml".into()),
        upstream_style: Some("virtual".into()),
        upstream_credentials: Some("env".into()),
        ..ResignSettings::default()
    });
    let resign = resign.unwrap();
    assert_eq!(resign.upstream_style, Some(AddressStyle::VirtualHost));
    assert_eq!(resign.upstream_credentials, CredentialSource::Environment);
    let (_, faults) = validate(&ResignSettings {
        keys: Some("keys.toml".into()),
        upstream_style: Some("host".into()),
        upstream_credentials: Some("imds".into()),
        ..ResignSettings::default()
    });
    let faults = faults.unwrap();
    assert!(
        faults.contains("resign-upstream-style: expected virtual or path, found `host`"),
        "{faults}"
    );
    assert!(
        faults.contains("resign-upstream-credentials: expected chain or env, found `imds`"),
        "{faults}"
    );
}

#[test]
fn the_store_is_always_asked_by_default_and_once_an_hour_at_least() {
    let max_age = |text: Option<&str>| {
        let (resign, faults) = validate(&ResignSettings {
            keys: Some("keys.toml".into()),
            cache_max_age: text.map(Text::from),
            ..ResignSettings::default()
        });
        faults.map_or_else(|| Ok(resign.unwrap().cache_max_age), Err)
    };
    assert_eq!(max_age(None), Ok(Duration::ZERO));
    assert_eq!(max_age(Some("0s")), Ok(Duration::ZERO));
    assert_eq!(max_age(Some("1h")), Ok(Duration::from_hours(1)));
    for wrong in ["61m", "30", "-1s"] {
        let fault = max_age(Some(wrong)).unwrap_err();
        assert!(fault.contains("resign-cache-max-age: expected"), "{fault}");
    }
}

#[test]
fn a_public_host_is_not_below_a_domain() {
    let (_, faults) = validate(&ResignSettings {
        keys: Some("keys.toml".into()),
        domains: Some("s3.lab.example".into()),
        public_hosts: Some("photos.s3.lab.example:443, s3.lab.example".into()),
        ..ResignSettings::default()
    });
    let faults = faults.unwrap();
    assert!(faults.contains("found `photos.s3.lab.example:443`"), "{faults}");
    assert!(!faults.contains("found `s3.lab.example`"), "{faults}");
}
