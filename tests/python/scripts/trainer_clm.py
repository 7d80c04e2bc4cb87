# SPDX-License-Identifier: Apache-2.0
"""Trains a small causal language model with Hugging Face's Trainer, as run_clm.py does."""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Blocks(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(50, (12,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


def main():
    training_args = TrainingArguments(
        output_dir=sys.argv[1], max_steps=7, per_device_train_batch_size=4, gradient_accumulation_steps=2,
        learning_rate=1e-3, max_grad_norm=0.5, report_to="none", save_strategy="no", use_cpu=True,
        disable_tqdm=True)
    set_seed(42)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    trainer = Trainer(model=model, args=training_args, train_dataset=Blocks())
    trainer.train()


if __name__ == "__main__":
    main()
