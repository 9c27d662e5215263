//! The loss of a sentence, and its gradients by new low-rank factors: `gradients MODEL.gguf`.

use train::kernels::{Executor, Watch};
use train::model::{Model, tokenizer::Special};
use train::{Document, GradientOptions, Gradients, NO_TARGET, Targets, Trained};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: gradients MODEL.gguf")?;
    let model = Model::open(path)?.on(Executor::best())?;
    let factors = Targets::default().factors(model.weights(), 16, 2.0, 0)?; // rank, scale, seed
    let mut gradients = Gradients::new(&model, &Trained::Factors(factors), &GradientOptions::default())?;
    let ids = model.tokenizer().encode("Mira lives in Bellwharf.", Special::Text)?;
    let targets = ids[1..].iter().copied().chain([NO_TARGET]).collect();
    let loss = gradients.compute(&[Document { ids, targets, ..Document::default() }], Watch::default())?;
    println!("loss {:.4} over {} targets", loss.loss, loss.targets);
    println!("{}: {:?}", gradients.gradients()?[1].name, &gradients.gradients()?[1].values[..4]);
    Ok(())
}
