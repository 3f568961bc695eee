//! Embeds the console's page into the program, if the page was built.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let folder = crate_dir.join("../../console/dist");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    if folder.is_dir() {
        collect(&folder, &mut files)?;
    }
    files.sort();
    let mut text = "/// Names and contents.\nstatic FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for file in &files {
        let name = file.strip_prefix(&folder).unwrap_or(file);
        let line = format!(
            "    ({:?}, include_bytes!({:?})),",
            name.to_string_lossy(),
            file.to_string_lossy()
        );
        writeln!(text, "{line}").map_err(io::Error::other)?;
    }
    text += "];\n";
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("console_files.rs"), text)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            files.push(path);
        }
    }
    Ok(())
}
