//! Where lines come from: a terminal, with editing, or a stream.

use std::io::{self, BufRead, StdinLock};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

/// Lines, one after the other.
pub enum Lines {
    Terminal(Box<DefaultEditor>),
    Stream(StdinLock<'static>),
}

/// A line, or what came in its place.
pub enum Line {
    Text(String),
    /// Ctrl-C: what was typed so far is not meant.
    Dropped,
    /// There are no more.
    End,
}

impl Lines {
    /// From the terminal.
    pub fn of_terminal() -> Result<Self, String> {
        let editor = DefaultEditor::new().map_err(|error| unreadable(&error))?;
        Ok(Self::Terminal(Box::new(editor)))
    }

    /// From the standard input.
    pub fn of_stdin() -> Self {
        Self::Stream(io::stdin().lock())
    }

    /// The next line, without its end. A person is shown the prompt.
    pub fn next(&mut self, prompt: &str) -> Result<Line, String> {
        match self {
            Self::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    // A line that is not remembered can be typed again.
                    let _ = editor.add_history_entry(&line);
                    Ok(Line::Text(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Line::Dropped),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(unreadable(&error)),
            },
            Self::Stream(stream) => {
                let mut line = String::new();
                match stream.read_line(&mut line) {
                    Ok(0) => Ok(Line::End),
                    Ok(_) => {
                        let text = line.strip_suffix('\n').unwrap_or(&line);
                        Ok(Line::Text(text.strip_suffix('\r').unwrap_or(text).to_owned()))
                    }
                    Err(error) => Err(unreadable(&error)),
                }
            }
        }
    }
}

fn unreadable(error: &dyn std::error::Error) -> String {
    format!("fence: the standard input cannot be read: {error}: give statements in UTF-8")
}
