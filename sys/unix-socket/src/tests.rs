use std::os::unix::net::UnixListener;

use super::*;

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nic.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    probe_listening(&path).unwrap();
    assert!(path.exists(), "a probe has changed something");
    let listener = listen_on(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
    for error in [probe_listening(&path).unwrap_err(), listen_on(&path).err().unwrap()] {
        assert_eq!((error.kind, error.field), (DeviceErrorKind::Busy, "socket"));
        assert!(error.detail.contains("another process listens"), "{error}");
    }
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_replaced_socket_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nic.sock");
    let listener = listen_on(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());
}

#[test]
fn impossible_paths_are_explained() {
    let directory = tempfile::tempdir().unwrap();
    let kind = |path: &Path| probe_listening(path).unwrap_err().kind;
    assert_eq!(kind(&directory.path().join("none/nic.sock")), DeviceErrorKind::Missing);
    assert_eq!(kind(&directory.path().join("x".repeat(120))), DeviceErrorKind::Unsupported);
    let file = directory.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert_eq!(kind(&file), DeviceErrorKind::Busy);
    assert!(listen_on(&file).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(kind(&file.join("nic.sock")), DeviceErrorKind::Missing);
}
