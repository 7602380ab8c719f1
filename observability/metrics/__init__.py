"""Figures: queue depths, throughput, history, forecast, workers, and the charts that draw them."""
