//! `scry completions` and `scry man`: texts that are generated from the command line's definition.

use std::fs;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use crate::args::{Cli, Man};
use crate::report::{Failure, Report};

/// Returns the completion script of a shell.
pub fn completions(shell: Shell) -> Result<Report, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(&Cli::command()), "scry", &mut script);
    let script = text(script)?;
    let json = json!({ "shell": shell.to_string(), "script": script });
    Ok(Report::new(script, json))
}

/// Copies a command without hidden options, which clap_complete would list.
fn without_hidden(command: &Command) -> Command {
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let mut copy = Command::new(command.get_name().to_owned())
        .args(visible.cloned())
        .subcommands(command.get_subcommands().map(without_hidden))
        .subcommand_required(command.is_subcommand_required_set());
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    match command.get_version() {
        Some(version) => copy.version(version.to_owned()),
        None => copy,
    }
}

/// Prints one man page, or writes all of them as files.
pub fn man(args: &Man) -> Result<Report, Failure> {
    let pages = pages()?;
    let Some(folder) = &args.output else {
        let name = match &args.command {
            Some(command) => format!("scry-{command}"),
            None => "scry".to_owned(),
        };
        let page = pages.into_iter().find(|(title, _)| *title == name);
        let (_, page) = page.ok_or_else(|| unknown(args.command.as_deref().unwrap_or_default()))?;
        return Ok(Report::new(page.clone(), json!({ "page": page })));
    };
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let mut files = Vec::new();
    for (title, page) in &pages {
        let path = folder.join(format!("{title}.1"));
        fs::write(&path, page).map_err(|error| Failure::file(&path, error))?;
        files.push(path.display().to_string());
    }
    let text = format!("{} pages -> {}\n", files.len(), folder.display());
    Ok(Report::new(text, json!({ "files": files })))
}

fn unknown(name: &str) -> Failure {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    Failure::usage(format!("scry has no command `{name}`; its commands are {}", names.join(", ")))
}

/// Returns title and text of every page: that of `scry`, and one for each of its commands.
fn pages() -> Result<Vec<(String, String)>, Failure> {
    let mut scry = Cli::command();
    scry.build();
    let commands = scry.get_subcommands().filter(|command| command.get_name() != "help");
    std::iter::once(&scry).chain(commands).map(page).collect()
}

fn page(command: &Command) -> Result<(String, String), Failure> {
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    // In a man page notes come last, examples included.
    let parts = [command.get_before_help(), command.get_after_help()];
    let notes: Vec<String> = parts.into_iter().flatten().map(ToString::to_string).collect();
    let command = command.clone().before_help("").after_help(notes.join("\n\n"));
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| Failure::Runtime(format!("the man page {title}: {error}")))?;
    Ok((title, text(page)?))
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| Failure::Runtime(error.to_string()))
}
