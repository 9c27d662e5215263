//! Trains an adapter on a file of examples: `lora MODEL.gguf FACTS.jsonl FOLDER`.

use train::kernels::{Executor, Watch};
use train::model::Model;
use train::{Batches, Data, DataOptions, Lora, Texts, Trainer, TrainerOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, facts, folder] = &words[..] else { return Err("usage: lora MODEL.gguf FACTS.jsonl FOLDER".into()) };
    let model = Model::open(path)?.on(Executor::best())?;
    let data = Data::open(&[facts.into()], Texts::from(&model), &DataOptions::default(), &|_| {})?;
    let mut batches = Batches::new(data, 8, 0); // examples of a step, seed
    let mut trainer = Trainer::new(&model, Lora::new(16), &TrainerOptions::default())?;
    for _ in 0..3 * batches.per_epoch() {
        let step = trainer.step(&batches.next()?, Watch::default())?;
        println!("{:4} {:.4}", step.number, step.loss.loss);
    }
    trainer.save_peft(folder)?;
    Ok(())
}
