//! Query parameters of a path.

/// Appends the given query parameters to a path. Values are percent-encoded.
pub(crate) fn with_query(path: &str, pairs: &[(&str, Option<String>)]) -> String {
    let mut full = path.to_owned();
    let present = pairs.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    for (index, (key, value)) in present.enumerate() {
        full.push(if index == 0 { '?' } else { '&' });
        full.push_str(key);
        full.push('=');
        full.extend(form_urlencoded::byte_serialize(value.as_bytes()));
    }
    full
}
