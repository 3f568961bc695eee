//! Validation of `[cluster]` and of shared stores.

use crate::finding::{Finding, FindingLocation};
use crate::{ErrorCode, HostConfig, ResourceKind};

/// Reports invalid combinations of the keys of `[cluster]`.
pub(crate) fn check_cluster(config: &HostConfig, findings: &mut Vec<Finding>) {
    let Some(cluster) = &config.cluster else { return };
    let location = FindingLocation::new(ResourceKind::Cluster, 0);
    let mut report =
        |code, field: &str, text: &str| findings.push(location.finding(code, field, text));
    let is_https = |url: &String| url.starts_with("https://");
    let secure = cluster.endpoints.iter().filter(|url| is_https(url)).count();
    if secure > 0 && secure < cluster.endpoints.len() {
        let text = "the list mixes http and https; use one of them for all members of etcd";
        report(ErrorCode::InvalidValue, "endpoints", text);
    }
    match &cluster.tls {
        None if secure > 0 => {
            let text = "missing; `https` requires `tls.ca_certificate`, the CA certificates of etcd's \
                        members";
            report(ErrorCode::MissingKey, "tls", text);
        }
        Some(_) if secure == 0 => {
            let text = "applies only to https; use https:// endpoints or remove this key";
            report(ErrorCode::KeyNotApplicable, "tls", text);
        }
        Some(tls) if tls.certificate.is_some() != tls.key.is_some() => {
            let text = "`certificate` and `key` are required together; set both or none";
            report(ErrorCode::InvalidValue, "tls", text);
        }
        _ => {}
    }
    if cluster.user.is_some() != cluster.password_file.is_some() {
        let text = "`user` and `password_file` are required together; set both or none";
        report(ErrorCode::InvalidValue, "user", text);
    }
    for (index, store) in config.stores.iter().enumerate() {
        if store.shared && store.capacity_iops.is_none() {
            let location = FindingLocation::new(ResourceKind::Store, index);
            let text = "missing; a shared store of a cluster needs a capacity: a number, the same \
                        on all nodes, or `measure`";
            findings.push(location.finding(ErrorCode::MissingKey, "capacity_iops", text));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Plan, ResourceKind, parse_toml, to_toml};

    const GOOD: &str = "[cluster]\nname = \"lab\"\nnode = \"n1\"\n\
        endpoints = [\"https://192.0.2.10:2379\", \"https://etcd2.example.net:2379\"]\n\
        user = \"suimon\"\npassword_file = \"/etc/suimon/etcd.password\"\n\n\
        [cluster.tls]\nca_certificate = \"/etc/suimon/etcd.pem\"\n\
        certificate = \"/etc/suimon/n1.pem\"\nkey = \"/etc/suimon/n1.key\"\n";

    #[test]
    fn a_cluster_is_written_as_it_is_read_and_changes_live() {
        let config = parse_toml(GOOD, None).unwrap();
        assert_eq!(to_toml(&config), GOOD);
        let other = parse_toml(&GOOD.replace("n1.pem", "n2.pem"), None).unwrap();
        let plan = Plan::between(&config, &other);
        let steps: Vec<_> = plan.steps.iter().map(ToString::to_string).collect();
        let change = "tls.certificate /etc/suimon/n1.pem → /etc/suimon/n2.pem";
        assert_eq!(steps, [format!("~ cluster change live: {change}")]);
        let none = parse_toml("", None).unwrap();
        assert_eq!(Plan::between(&none, &config).steps[0].to_string(), "+ cluster create");
        assert_eq!(Plan::between(&config, &none).steps[0].to_string(), "- cluster delete");
        assert!(ResourceKind::Cluster.key("name").is_some());
    }

    #[test]
    fn errors_contain_the_key_and_line() {
        let store = "[[store]]\nname = \"san\"\npath = \"/srv/san\"\nshared = true\n";
        for (from, to, field, part) in [
            ("https://192.0.2.10:2379", "192.0.2.10:2379", "endpoints", "http://"),
            (
                "https://192.0.2.10:2379",
                "http://192.0.2.10:2379",
                "endpoints",
                "mixes http and https",
            ),
            ("https://192.0.2.10:2379", "https://192.0.2.10", "endpoints", "http://"),
            ("key = \"/etc/suimon/n1.key\"\n", "", "tls", "are required together"),
            ("user = \"suimon\"\n", "", "user", "are required together"),
            ("node = \"n1\"\n", "", "node", "missing"),
            ("\"/etc/suimon/etcd.pem\"", "\"etcd.pem\"", "ca_certificate", "an absolute path"),
        ] {
            let errors = parse_toml(&GOOD.replacen(from, to, 1), None).unwrap_err();
            let is_reported = errors.iter().any(|error| {
                let field_fits = error.field.as_deref().is_some_and(|name| name.ends_with(field));
                field_fits && error.message.contains(part) && error.line.is_some()
            });
            assert!(is_reported, "{to}: {errors:?}");
        }
        let plain = GOOD.replace("https://", "http://");
        let errors = parse_toml(&plain, None).unwrap_err();
        assert!(errors[0].message.contains("applies only to https"), "{errors:?}");
        let errors = parse_toml(&format!("{GOOD}{store}"), None).unwrap_err();
        assert_eq!(errors[0].resource.as_deref(), Some("store/san"));
        assert!(errors[0].message.contains("same on all nodes"), "{errors:?}");
        parse_toml(store, None).unwrap();
        parse_toml(&format!("{GOOD}{store}capacity_iops = 5000\n"), None).unwrap();
    }
}
