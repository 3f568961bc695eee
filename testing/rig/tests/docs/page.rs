//! Parser of executable pages: Markdown in which fenced blocks are commands and files. The format
//! is described in docs/contributing.md, "Executable documentation".

use anyhow::{Context, Result, bail, ensure};

/// One action of a page, with the line of the page on which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Line number in the page, from 1.
    pub(crate) line: usize,
    /// Action.
    pub(crate) action: Action,
}

/// What a step does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Writes a file. The name is relative to the working directory or absolute.
    File { name: String, content: String },
    /// Runs a command of a console block and compares its output and exit status.
    Command { text: String, output: Vec<String>, status: i32 },
    /// Runs a command that the reader does not see. It must exit 0.
    Hidden(String),
    /// Repeats a command that the reader does not see until it exits 0.
    Until(String),
}

/// Directive of a comment that concerns the fenced block after it.
enum Pending {
    File(String),
    NoTest,
}

/// Returns the steps of a page in their order.
///
/// # Errors
/// The page violates the format. The error names the line.
pub(crate) fn parse(text: &str) -> Result<Vec<Step>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut steps = Vec::new();
    let mut pending: Option<(usize, Pending)> = None;
    let mut index = 0;
    while index < lines.len() {
        let number = index + 1;
        let line = lines[index].trim();
        index += 1;
        if let Some(info) = line.strip_prefix("```") {
            let indent = lines[number - 1].len() - lines[number - 1].trim_start().len();
            let length = lines[index..]
                .iter()
                .position(|line| line.trim() == "```")
                .with_context(|| format!("line {number}: the block has no end"))?;
            let block: Vec<&str> =
                lines[index..index + length].iter().map(|line| unindent(line, indent)).collect();
            index += length + 1;
            match (pending.take(), info.trim()) {
                (Some((_, Pending::NoTest)), _) => {}
                (Some((_, Pending::File(name))), _) => {
                    let content = block.iter().flat_map(|line| [line, "\n"]).collect();
                    steps.push(Step { line: number, action: Action::File { name, content } });
                }
                (None, "console") => steps.extend(console(&block, number + 1)?),
                (None, _) => {}
            }
        } else if let Some((key, value)) = directive(line, number)? {
            if let Some((line, _)) = pending {
                bail!("line {line}: no block follows the comment");
            }
            let action = match key {
                "run" => Action::Hidden(value),
                "until" => Action::Until(value),
                "file" => {
                    pending = Some((number, Pending::File(value)));
                    continue;
                }
                "no test" => {
                    pending = Some((number, Pending::NoTest));
                    continue;
                }
                _ => bail!("line {number}: `{key}` is none of file, run, until, no test"),
            };
            steps.push(Step { line: number, action });
        } else if let (Some((line, _)), false) = (&pending, line.is_empty()) {
            bail!("line {line}: no block follows the comment");
        }
    }
    if let Some((line, _)) = pending {
        bail!("line {line}: no block follows the comment");
    }
    Ok(steps)
}

/// Returns the key and value of a comment `<!-- key: value -->`, `None` for other lines.
fn directive(line: &str, number: usize) -> Result<Option<(&str, String)>> {
    let Some(rest) = line.strip_prefix("<!--") else { return Ok(None) };
    let Some((key, value)) = rest.split_once(':') else { return Ok(None) };
    let value = value
        .strip_suffix("-->")
        .with_context(|| format!("line {number}: the comment does not end on its line"))?
        .trim();
    ensure!(!value.is_empty(), "line {number}: the comment has no value");
    Ok(Some((key.trim(), value.to_owned())))
}

/// Removes at most `indent` spaces, those of a block in a list.
fn unindent(line: &str, indent: usize) -> &str {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    &line[spaces.min(indent)..]
}

/// Returns the commands of a console block whose first line has the number `first`.
fn console(block: &[&str], first: usize) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut index = 0;
    while index < block.len() {
        let line = first + index;
        let Some(command) = block[index].strip_prefix("$ ") else {
            bail!("line {line}: a console block begins with a command, `$ …`");
        };
        let length = command_length(command, &block[index + 1..])
            .with_context(|| format!("line {line}: the command has no end"))?;
        let text = [&[command], &block[index + 1..index + length]].concat().join("\n");
        index += length;
        let end = block[index..].iter().position(|line| line.starts_with("$ "));
        let end = end.map_or(block.len(), |length| index + length);
        let mut output: Vec<String> =
            block[index..end].iter().map(|&line| line.to_owned()).collect();
        let status = match output.last().and_then(|line| exit_status(line)) {
            Some(status) => {
                output.pop();
                status.with_context(|| format!("line {}", first + end - 1))?
            }
            None => 0,
        };
        index = end;
        steps.push(Step { line, action: Action::Command { text, output, status } });
    }
    Ok(steps)
}

/// Returns the number of lines of a command: it continues after a `\` at the end of a line, and
/// through its here-documents. `None` if they have no end.
fn command_length(first: &str, rest: &[&str]) -> Option<usize> {
    let mut line = first;
    let mut ends = here_documents(line);
    let mut lines = rest.iter();
    let mut length = 1;
    while line.ends_with('\\') {
        line = lines.next()?;
        ends.extend(here_documents(line));
        length += 1;
    }
    for end in ends {
        length += lines.by_ref().position(|line| line.trim_start_matches('\t') == end)? + 1;
    }
    Some(length)
}

/// Returns the words that end the here-documents which begin on a line.
fn here_documents(line: &str) -> Vec<String> {
    let mut ends = Vec::new();
    for part in line.split("<<").skip(1) {
        let tag = part.trim_start_matches('-').trim_start();
        // `<<<` is followed by a string; in arithmetic `<<` is followed by a number.
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic() || "_'\"".contains(c)) {
            continue;
        }
        let tag: String =
            tag.chars().take_while(|c| !c.is_whitespace() && !";|&>)".contains(*c)).collect();
        ends.push(tag.replace(['\'', '"'], ""));
    }
    ends
}

/// Returns the number in a line `[exit status: N]`, `None` for other lines.
fn exit_status(line: &str) -> Option<Result<i32>> {
    let number = line.trim().strip_prefix("[exit status:")?.strip_suffix(']')?.trim();
    Some(number.parse().with_context(|| format!("{number:?} is no exit status")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: usize, text: &str, output: &[&str], status: i32) -> Step {
        let output = output.iter().map(|&line| line.to_owned()).collect();
        Step { line, action: Action::Command { text: text.to_owned(), output, status } }
    }

    #[test]
    fn commands_have_their_output_and_exit_status() {
        let page = "Text.\n\n```console\n$ one\nout\n$ two\n$ three\n[exit status: 4]\n```\n";
        let expected = [
            command(4, "one", &["out"], 0),
            command(6, "two", &[], 0),
            command(7, "three", &[], 4),
        ];
        assert_eq!(parse(page).unwrap(), expected);
    }

    #[test]
    fn commands_continue_after_a_backslash_and_in_here_documents() {
        let page = "```console\n$ a \\\n    b\nout\n$ cat <<'EOF' | \\\n  sort\n$ x\nEOF\nout\n\
                    $ wc <<< word\n1\n```\n";
        let expected = [
            command(2, "a \\\n    b", &["out"], 0),
            command(5, "cat <<'EOF' | \\\n  sort\n$ x\nEOF", &["out"], 0),
            command(10, "wc <<< word", &["1"], 0),
        ];
        assert_eq!(parse(page).unwrap(), expected);
    }

    #[test]
    fn files_and_hidden_commands_are_steps() {
        let page = "<!-- file: /etc/a.toml -->\n\n```toml\na = 1\n\n  b = 2\n```\n\
                    <!-- run: make it -->\n<!-- until: test -e it -->\n<!-- a remark -->\n";
        let steps = parse(page).unwrap();
        let content = "a = 1\n\n  b = 2\n".to_owned();
        let file = Action::File { name: "/etc/a.toml".to_owned(), content };
        let hidden = Action::Hidden("make it".to_owned());
        let until = Action::Until("test -e it".to_owned());
        let actions: Vec<Action> = steps.into_iter().map(|step| step.action).collect();
        assert_eq!(actions, [file, hidden, until]);
    }

    #[test]
    fn blocks_in_lists_lose_their_indentation() {
        let page = "1. Step\n\n   ```console\n   $ ls\n   a\n     b\n   ```\n";
        assert_eq!(parse(page).unwrap(), [command(4, "ls", &["a", "  b"], 0)]);
    }

    #[test]
    fn other_blocks_and_those_without_a_test_are_left_out() {
        let page = "```toml\n$ x\n```\n<!-- no test: needs hardware -->\n```console\n$ x\n```\n";
        assert_eq!(parse(page).unwrap(), []);
    }

    #[test]
    fn errors_name_the_line() {
        let invalid = [
            ("\n```console\nls\n```\n", "line 3: a console block begins with a command"),
            ("```console\n$ ls\n", "line 1: the block has no end"),
            ("```console\n$ cat <<EOF\n```\n", "line 2: the command has no end"),
            ("```console\n$ ls \\\n```\n", "line 2: the command has no end"),
            ("<!-- file: a -->\ntext\n", "line 1: no block follows"),
            ("<!-- no test: a -->\n", "line 1: no block follows"),
            ("<!-- no test: a -->\n<!-- run: b -->\n", "line 1: no block follows"),
            ("<!-- notest: a -->\n", "line 1: `notest` is none of"),
            ("<!-- run: a\n", "line 1: the comment does not end on its line"),
            ("<!-- no test: -->\n", "line 1: the comment has no value"),
            ("```console\n$ a\n[exit status: x]\n```\n", "line 3"),
        ];
        for (page, message) in invalid {
            let error = format!("{:#}", parse(page).unwrap_err());
            assert!(error.contains(message), "{page:?}: {error}");
        }
    }
}
