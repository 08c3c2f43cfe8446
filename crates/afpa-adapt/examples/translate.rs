//! Prints the translation of a file on standard output, and the notes on standard error.

fn main() {
    let name = std::env::args().nth(1).expect("a file");
    let text = std::fs::read_to_string(&name).expect("its text");
    let mut files = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(vec![(path.to_owned(), text)])
    };
    match afpa_adapt::adapt(&name, &text, &mut files) {
        Ok(done) => {
            print!("{}", done.toml);
            done.notes.iter().for_each(|note| eprintln!("{note}"));
        }
        Err(error) => eprintln!("{error}"),
    }
}
