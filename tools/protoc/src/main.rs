//! Replaces `protoc` in builds on machines that do not have it.
//!
//! Accepts what `prost-build` passes: `--include_imports`, `--include_source_info`, `-o FILE`,
//! `-I DIRECTORY` and proto files. Writes a descriptor set. `scripts/protoc` builds and runs it.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use protox::Compiler;

/// Arguments of `protoc` that prost-build passes.
#[derive(Debug, Default)]
struct Arguments {
    includes: Vec<PathBuf>,
    output: Option<PathBuf>,
    has_imports: bool,
    has_source_info: bool,
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match Arguments::parse(std::env::args_os().skip(1)).and_then(|arguments| compile(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("protoc: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    /// Parses the command line without the program's name. Values may be separate or attached.
    fn parse(values: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut values = values;
        while let Some(argument) = values.next() {
            let text = argument.to_string_lossy().into_owned();
            let mut value = |attached: &str| match attached {
                "" => values.next().ok_or_else(|| format!("{text}: the value is missing")),
                attached => Ok(OsString::from(attached)),
            };
            if text == "--include_imports" {
                arguments.has_imports = true;
            } else if text == "--include_source_info" {
                arguments.has_source_info = true;
            } else if let Some(attached) = text.strip_prefix("-I") {
                arguments.includes.push(value(attached)?.into());
            } else if let Some(attached) = text.strip_prefix("-o") {
                arguments.output = Some(value(attached)?.into());
            } else if text.starts_with('-') {
                return Err(format!("{text}: this option is not supported; install protoc"));
            } else {
                arguments.files.push(argument.into());
            }
        }
        Ok(arguments)
    }
}

fn compile(arguments: &Arguments) -> Result<(), String> {
    let output = arguments.output.as_ref().ok_or("-o FILE is missing")?;
    let mut compiler = Compiler::new(&arguments.includes).map_err(|error| error.to_string())?;
    compiler.include_imports(arguments.has_imports);
    compiler.include_source_info(arguments.has_source_info);
    for file in &arguments.files {
        compiler.open_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    fs::write(output, compiler.encode_file_descriptor_set())
        .map_err(|error| format!("cannot write {}: {error}", output.display()))
}
