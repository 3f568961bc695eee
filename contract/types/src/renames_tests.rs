//! Every row of the table of renames has its effects: a new row is tested without a new test.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::{
    ClusterDisk, ClusterStatus, Components, ConfinementStatus, DiskStatus, DrainPlan, ErrorCode,
    EventKind, HostConfig, MoveQueueRequest, PowerStatus, QosFlowStatus, QosPolicyStatus,
    QueueStatus, RENAMES, Rename, RenamedItem, ResourceKind, StoreStatus, TopSnapshot, VmStatus,
    VmqStatus, WhatIfRequest, WhatIfResponse, check_patch, describe_keys, describe_renames,
    from_json, kind_example, old_names_in_apply, old_names_in_file, old_names_in_table,
    parse_request_with_old_names, parse_toml, rename_of_old_key, renames_of_schema, renames_page,
    replace_old_names, to_json, to_stored_json, to_toml,
};

fn components() -> Components {
    let mut components = Vec::new();
    macro_rules! add {
        ($($type:ty),*) => {$(
            components.push((<$type>::name().into_owned(), <$type as utoipa::PartialSchema>::schema()));
            <$type>::schemas(&mut components);
        )*};
    }
    add!(
        HostConfig,
        StoreStatus,
        QosPolicyStatus,
        QosFlowStatus,
        ClusterStatus,
        ClusterDisk,
        QueueStatus,
        DiskStatus,
        MoveQueueRequest,
        VmqStatus,
        TopSnapshot,
        PowerStatus,
        ConfinementStatus,
        DrainPlan,
        VmStatus,
        WhatIfResponse,
        WhatIfRequest
    );
    let mut components: Components = components.into_iter().collect();
    describe_keys(&mut components);
    describe_renames(&mut components);
    components
}

/// Returns the renamed fields with the component of each.
fn fields() -> impl Iterator<Item = (&'static str, &'static Rename)> {
    RENAMES.iter().filter_map(|rename| match rename.item {
        RenamedItem::Field { schema } => Some((schema, rename)),
        _ => None,
    })
}

/// Returns the renamed keys of the host file with the kind of table of each.
fn keys() -> impl Iterator<Item = (ResourceKind, &'static Rename)> {
    fields().filter_map(|(schema, rename)| {
        let kind = ResourceKind::ALL.into_iter().find(|kind| kind.schema_name() == schema)?;
        Some((kind, rename))
    })
}

/// Returns a valid value of a key other than its default.
fn value_of(kind: ResourceKind, rename: &Rename) -> Value {
    let form = kind.key(rename.new).unwrap().form;
    let candidates = [json!([0, 1]), json!(2), json!("/etc/suimon/ca.pem"), json!("measure")];
    candidates.into_iter().find(|value| form.accepts(value)).unwrap_or_else(|| panic!("{rename:?}"))
}

/// Returns a host file as JSON with the key in a table of this kind.
fn document(kind: ResourceKind, entries: &[(&str, Value)]) -> Map<String, Value> {
    let mut table = kind_example(kind).unwrap_or_else(|| json!({}));
    if let Value::Object(table) = &mut table {
        // The example may have the key itself.
        table.retain(|name, _| entries.iter().all(|(entry, _)| !is_same(kind, entry, name)));
        table.extend(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    let mut root = json!({ "host": { "worker_cpus": [0, 1, 2, 3] } });
    match kind {
        ResourceKind::Host => root["host"] = table,
        ResourceKind::Vmq => {
            root["uplink"] = json!([{ "name": "wan", "device": "eth0", "vmq": table }]);
            root["switch"] = json!([{ "name": "lan", "kind": "external", "uplink": "wan" }]);
        }
        ResourceKind::ClusterTls => {
            root["cluster"] = json!({
                "name": "c", "node": "n1", "endpoints": ["https://etcd:2379"], "tls": table,
            });
        }
        kind => root[kind.noun()] = json!([table]),
    }
    let Value::Object(root) = root else { panic!() };
    root
}

/// Returns true if both are names of one key.
fn is_same(kind: ResourceKind, a: &str, b: &str) -> bool {
    let new = |name| rename_of_old_key(kind, name).map_or(name, |rename| rename.new);
    new(a) == new(b)
}

fn apply_body(config: &Map<String, Value>) -> Vec<u8> {
    json!({ "config": config }).to_string().into_bytes()
}

#[test]
fn names_are_unique_and_no_new_name_is_the_old_name_of_the_same_object() {
    let location = |renamed| match renamed {
        RenamedItem::Field { schema } | RenamedItem::CommandOutput { schema } => schema.to_owned(),
        RenamedItem::Metric { .. } => "metric".to_owned(),
        other => format!("{other:?}"),
    };
    for (index, rename) in RENAMES.iter().enumerate() {
        assert_ne!(rename.old, rename.new);
        let later = RENAMES.iter().skip(index + 1);
        for other in later.filter(|other| location(other.item) == location(rename.item)) {
            for name in [rename.old, rename.new] {
                assert!(![other.old, other.new].contains(&name), "{other:?}");
            }
        }
    }
}

#[test]
fn components_have_both_names_and_the_old_one_is_deprecated() {
    let components = components();
    for (schema, rename) in fields() {
        let Some(RefOr::T(Schema::Object(object))) = components.get(schema) else {
            panic!("no component {schema}");
        };
        let json = serde_json::to_value(object).unwrap();
        let (old, new) = (&json["properties"][rename.old], &json["properties"][rename.new]);
        assert!(new.is_object() && new["deprecated"].is_null(), "{rename:?}: {new}");
        assert_eq!(old["deprecated"], true, "{rename:?}: {old}");
        let description = old["description"].as_str().unwrap_or_default();
        assert!(description.contains(&format!("Use `{}`", rename.new)), "{rename:?}: {old}");
        assert!(!object.required.contains(&rename.old.to_owned()), "{rename:?}");
    }
}

#[test]
fn host_files_are_accepted_with_either_name_and_mean_the_same() {
    for (kind, rename) in keys() {
        let value = value_of(kind, rename);
        let read = |name| {
            let body = apply_body(&document(kind, &[(name, value.clone())]));
            (crate::parse_apply(&body), old_names_in_apply(&body))
        };
        let ((with_old, old), (with_new, new)) = (read(rename.old), read(rename.new));
        let with_new = with_new.unwrap_or_else(|errors| panic!("{rename:?}: {errors:?}"));
        assert_eq!(with_old, Ok(with_new.clone()), "{rename:?}");
        assert_eq!(new, [], "{rename:?}");
        let [warning] = &old[..] else { panic!("{rename:?}: {old:?}") };
        let text = warning.to_string();
        assert!(text.contains(rename.old) && text.contains(rename.new), "{text}");
        assert!(text.contains("version 0.3"), "{text}");
        // The same as TOML, with the line.
        let toml = to_toml(&with_new);
        assert!(!toml.contains(rename.old), "{toml}");
        let toml = toml.replace(rename.new, rename.old);
        assert_eq!(parse_toml(&toml, None), Ok(with_new), "{toml}");
        let old_names = old_names_in_file(&toml, Some("host.toml"));
        let line = toml.lines().position(|line| line.contains(rename.old)).unwrap() + 1;
        assert!(
            old_names.iter().any(|old| old.line == Some(line) && old.rename.old == rename.old),
            "{old_names:?} {line}\n{toml}"
        );
    }
}

#[test]
fn different_values_of_both_names_are_an_error_that_names_both() {
    for (kind, rename) in keys() {
        let value = value_of(kind, rename);
        let equal = [(rename.old, value.clone()), (rename.new, value.clone())];
        let body = apply_body(&document(kind, &equal));
        assert!(crate::parse_apply(&body).is_ok(), "{rename:?}");
        assert_eq!(old_names_in_apply(&body), [], "{rename:?}");
        let other = match &value {
            Value::String(text) => json!(format!("{text}-2")),
            Value::Array(_) => json!([3]),
            _ => json!(1),
        };
        let different = [(rename.old, other), (rename.new, value)];
        let errors = crate::parse_apply(&apply_body(&document(kind, &different))).unwrap_err();
        let [error] = &errors[..] else { panic!("{rename:?}: {errors:?}") };
        let text = error.to_string();
        assert_eq!(error.code, ErrorCode::InvalidValue);
        assert!(text.contains(rename.old) && text.contains(rename.new), "{text}");
    }
}

#[test]
fn merge_patches_are_accepted_with_either_name() {
    for (kind, rename) in keys().filter(|(kind, _)| *kind != ResourceKind::Host) {
        for value in [value_of(kind, rename), Value::Null] {
            let patch = json!({ rename.old: value }).to_string();
            let required = kind.key(rename.new).unwrap().required && value.is_null();
            assert_eq!(check_patch(kind, patch.as_bytes()).is_err(), required, "{patch}");
            let old = old_names_in_table(kind, patch.as_bytes());
            assert_eq!(old.len(), 1, "{patch}: {old:?}");
        }
        let both = json!({ rename.old: value_of(kind, rename), rename.new: "x" }).to_string();
        assert!(check_patch(kind, both.as_bytes()).is_err(), "{both}");
    }
}

#[test]
fn requests_are_accepted_with_either_name() {
    let body = |name: &str| json!({ name: 3 }).to_string();
    let (new, none) =
        parse_request_with_old_names::<MoveQueueRequest>(body("worker").as_bytes()).unwrap();
    let (old, renames) =
        parse_request_with_old_names::<MoveQueueRequest>(body("processor").as_bytes()).unwrap();
    assert_eq!((new, none.len(), renames.len()), (old, 0, 1));
    let both = br#"{"worker": 1, "processor": 2}"#;
    let error = parse_request_with_old_names::<MoveQueueRequest>(both).unwrap_err().to_string();
    assert!(error.contains("`worker`") && error.contains("`processor`"), "{error}");
    let nested = br#"{"proposals":[{"store":{"name":"a","capability_iops":7}}]}"#;
    let (request, renames) = parse_request_with_old_names::<WhatIfRequest>(nested).unwrap();
    assert_eq!(renames.len(), 1, "{request:?}");
}

/// Struct with the name and the fields of a component.
struct Fake(&'static str);

impl serde::Serialize for Fake {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct(self.0, renames_of_schema(self.0).count())?;
        for rename in renames_of_schema(self.0) {
            fields.serialize_field(rename.new, rename.old)?;
        }
        fields.end()
    }
}

#[test]
fn responses_have_both_names_and_stored_state_the_old_one() {
    let outputs = RENAMES.iter().filter_map(|rename| match rename.item {
        RenamedItem::CommandOutput { schema } => Some((schema, rename)),
        _ => None,
    });
    for (schema, rename) in fields().chain(outputs) {
        let both: Value = serde_json::from_slice(&to_json(&[Fake(schema)]).unwrap()).unwrap();
        assert_eq!(both[0][rename.new], rename.old, "{schema}");
        assert_eq!(both[0][rename.old], rename.old, "{schema}");
        let stored: Value =
            serde_json::from_slice(&to_stored_json(&Some(Fake(schema))).unwrap()).unwrap();
        assert_eq!(stored[rename.old], rename.old, "{schema}");
        assert!(stored.get(rename.new).is_none(), "{schema}");
        let mut table = stored.as_object().cloned().unwrap();
        let mut count = 0;
        replace_old_names(schema, &mut table, |_| count += 1).unwrap();
        assert_eq!(table[rename.new], rename.old, "{schema}");
        assert_eq!(count, renames_of_schema(schema).count());
    }
}

#[test]
fn state_of_the_previous_version_is_read_and_new_state_is_readable_by_it() {
    for (kind, rename) in keys() {
        let body = apply_body(&document(kind, &[(rename.new, value_of(kind, rename))]));
        let config = crate::parse_apply(&body).unwrap();
        let stored = to_stored_json(&config).unwrap();
        let text = String::from_utf8(stored.clone()).unwrap();
        assert!(text.contains(&format!("\"{}\"", rename.old)), "{text}");
        assert!(!text.contains(&format!("\"{}\"", rename.new)), "{text}");
        assert_eq!(from_json::<HostConfig>(&stored).unwrap(), config);
        assert_eq!(from_json::<HostConfig>(&to_json(&config).unwrap()).unwrap(), config);
        assert_eq!(from_json::<HostConfig>(&serde_json::to_vec(&config).unwrap()).unwrap(), config);
    }
}

#[test]
fn event_kinds_have_the_new_names() {
    for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::Event) {
        let exists = |name| EventKind::ALL.iter().any(|kind| kind.name() == name);
        assert!(exists(rename.new) && !exists(rename.old), "{rename:?}");
    }
}

#[test]
fn the_page_lists_every_rename() {
    let page = renames_page();
    for rename in RENAMES {
        let row = |suffix: &str| format!("| `{}{suffix}` | `{}{suffix}` |", rename.old, rename.new);
        // Counters have a suffix.
        let is_listed = page.contains(&row("")) || page.contains(&row("_total"));
        assert!(is_listed, "{}", row(""));
    }
}
