//! Nodes with other versions of the protocol of migrations, and requests that cannot be read.

use super::*;

#[test]
fn a_node_with_another_protocol_version_is_rejected() {
    let pair = Pair::new();
    let arrival = pair.here.node.shared().outgoing_request(&name("web")).unwrap();
    let refuse = |arrival: suimon_contract::IncomingMigrationRequest, message: &str| {
        let errors = pair.there.node.check_incoming_migration(&arrival).unwrap_err();
        assert!(errors[0].to_string().contains(message), "{errors:?}");
    };
    let changed = |change: fn(&mut suimon_contract::IncomingMigrationRequest)| {
        let mut changed = arrival.clone();
        change(&mut changed);
        changed
    };
    refuse(changed(|request| request.protocol += 1), "version 3 of the migration protocol");
    refuse(
        changed(|request| request.protocol += 1),
        "has version 2 of the migration protocol, Suimon ",
    );
    refuse(
        changed(|request| request.protocol -= 1),
        "install the same version of Suimon on both nodes",
    );
    refuse(changed(|request| request.id = "../../x".to_owned()), "32 hexadecimal digits");
    refuse(
        changed(|request| request.uuid = "+0000000000000000000000000000000".to_owned()),
        "hexadecimal",
    );
    refuse(changed(|request| request.nics.clear()), "each once");
    let flags = changed(|request| {
        request.uses_kvm = true;
        request.cpu_flags = vec!["fpu".to_owned(), "amx_tile".to_owned()];
    });
    refuse(flags, "amx_tile");
    pair.there.node.check_incoming_migration(&arrival).unwrap();
}

#[test]
fn an_unreadable_request_is_rejected_with_the_versions_of_both_nodes() {
    let pair = Pair::new();
    let node = &pair.there.node;
    let unknown = "unknown field `colour`, expected one of `protocol`, `id`";
    let unknown = || ApiError::new(ErrorCode::UnknownKey, unknown).with_field("colour");
    let refuse = |body: &str| node.unreadable_migration_error(body.as_bytes(), unknown());
    let other = refuse(r#"{"protocol": 3, "from": "left", "colour": "red"}"#);
    assert_eq!((other.code, other.field.as_deref()), (ErrorCode::Unsupported, Some("protocol")));
    let version = node.host_status().version;
    let source_version = format!("has version 2 of the migration protocol, Suimon {version}");
    for part in ["node left has version 3", &source_version, "install the same version"] {
        assert!(other.message.contains(part), "{part}: {other}");
    }
    let unknown_field = refuse(r#"{"protocol": 2, "from": "left", "colour": "red"}"#);
    assert_eq!(
        (unknown_field.code, unknown_field.field.as_deref()),
        (ErrorCode::UnknownKey, Some("colour"))
    );
    for part in ["a key that", "node left", &version, "install the same version", "see the log"] {
        assert!(unknown_field.message.contains(part), "{part}: {unknown_field}");
    }
    // Not a request of a node.
    for body in [r#"{"colour": "red"}"#, "["] {
        let not_a_request = refuse(body);
        assert_eq!(
            (not_a_request.code, not_a_request.field.as_deref()),
            (unknown_field.code, Some("colour"))
        );
        assert!(
            not_a_request.message.contains("a key that")
                && !not_a_request.message.contains("version")
        );
        assert!(!not_a_request.message.contains("expected"), "{not_a_request}");
    }
    assert!(
        !unknown_field.message.contains("expected"),
        "the text of the parser is in the log: {unknown_field}"
    );
    let long_name = refuse(&format!(r#"{{"protocol": 1, "from": "{}"}}"#, "x".repeat(65)));
    assert!(long_name.message.starts_with("the source node has version 1"), "{long_name}");
}

#[test]
fn the_response_to_a_request_that_cannot_be_read_is_short() {
    let pair = Pair::new();
    let long = "x".repeat(1 << 20);
    let body = format!(r#"{{"protocol": 2, "from": "left", "{long}": 1}}"#);
    for (code, reason) in [
        (ErrorCode::UnknownKey, "a key that"),
        (ErrorCode::InvalidValue, "a value that"),
        (ErrorCode::Malformed, "not JSON"),
    ] {
        let error =
            ApiError::new(code, format!("the body cannot be read: {long}")).with_field(&long);
        for body in [body.as_str(), "["] {
            let error = pair.there.node.unreadable_migration_error(body.as_bytes(), error.clone());
            assert_eq!((error.code, &error.field), (code, &None));
            assert!(error.message.contains(reason) && error.message.len() < 500, "{error}");
        }
    }
}

/// A destination of an earlier version does not know all fields of the request.
#[test]
fn the_source_reports_both_versions_if_the_destination_cannot_read_its_request() {
    let pair = Pair::new();
    let text = "the body cannot be read: unknown field `copied`";
    let unknown = ApiError::new(ErrorCode::UnknownKey, text).with_field("copied");
    pair.here.far_nodes.intercept(move |_, call_name| {
        let is_request = ["check_arrival", "prepare_arrival"].contains(&call_name);
        is_request.then(|| PeerError::Rejected(vec![unknown.clone()]))
    });
    let version = pair.here.node.host_status().version;
    let assert_clear = |error: &ApiError| {
        let target_text = format!("version 2 of the migration protocol, Suimon {version}");
        let version_text = format!("node there has Suimon {version}");
        for part in [text, &target_text, &version_text, "install the same version"] {
            assert!(error.message.contains(part), "{part}: {error}");
        }
    };
    assert_clear(&refusal(&pair, "there"));
    let operation = pair.migrate();
    assert_clear(&operation.error.unwrap());
    pair.here.far_nodes.intercept(|_, _| None);
    pair.assert_here();
}
